#include "tests/opencl/recipes.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace attune::testing {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t Rows(const Problem& problem) { return problem.batch * problem.heads_q * problem.seq_q; }

v1::KernelLaunch& AddLaunch(v1::LaunchRecipe& recipe, const std::string& entry, int64_t grid, int64_t block) {
  v1::KernelLaunch& launch = *recipe.add_launches();
  launch.set_entry(entry);
  launch.mutable_grid()->set_x(grid);
  launch.mutable_block()->set_x(block);
  return launch;
}

void AddBuffers(v1::KernelLaunch& launch, std::initializer_list<v1::BufferRole> roles) {
  for (v1::BufferRole role : roles) launch.add_args()->mutable_buffer()->set_role(role);
}

// `index` in the recipe, with `bytes`; 0 leaves the buffer out.
void AddScratch(v1::LaunchRecipe& recipe, const std::string& name, int64_t bytes, bool zero) {
  v1::ScratchBuffer& scratch = *recipe.add_scratch();
  scratch.set_name(name);
  scratch.set_bytes(bytes);
  scratch.set_zero_before_first_run(zero);
}

void AddScratchArg(v1::KernelLaunch& launch, int index) {
  v1::KernelArg::Buffer& buffer = *launch.add_args()->mutable_buffer();
  buffer.set_role(v1::BUFFER_ROLE_SCRATCH);
  buffer.set_scratch(index);
}

void AddStrides(v1::KernelLaunch& launch, const Problem& problem, int64_t heads, int64_t rows) {
  const bool bshd = problem.layout == v1::LAYOUT_BSHD;
  launch.add_args()->set_i64(rows * heads * problem.head_dim);
  launch.add_args()->set_i64(bshd ? problem.head_dim : rows * problem.head_dim);
  launch.add_args()->set_i64(bshd ? heads * problem.head_dim : problem.head_dim);
}

void AddMask(v1::KernelLaunch& launch, const Problem& problem) {
  const bool masked = problem.mask != v1::MASK_NONE;
  launch.add_args()->set_i32(masked ? 1 : 0);
  launch.add_args()->set_i32(masked ? static_cast<int32_t>(CausalOffset(problem)) : 0);
}

// As manifests' `mask`; a window is none that these recipes are made for.
int MaskCode(const Problem& problem) {
  if (problem.mask == v1::MASK_NONE) return 0;
  return problem.mask == v1::MASK_CAUSAL_TOP_LEFT ? 1 : 2;
}

void AddShape(v1::KernelLaunch& launch, const Problem& problem) {
  launch.add_args()->set_i32(static_cast<int32_t>(problem.heads_q));
  launch.add_args()->set_i32(static_cast<int32_t>(problem.heads_q / problem.heads_kv));
  launch.add_args()->set_i32(static_cast<int32_t>(problem.seq_q));
  launch.add_args()->set_i32(static_cast<int32_t>(problem.seq_kv));
}

void AddAllStrides(v1::KernelLaunch& launch, const Problem& problem) {
  AddStrides(launch, problem, problem.heads_q, problem.seq_q);
  AddStrides(launch, problem, problem.heads_kv, problem.seq_kv);
}

constexpr auto kTensors = {v1::BUFFER_ROLE_Q, v1::BUFFER_ROLE_K, v1::BUFFER_ROLE_V, v1::BUFFER_ROLE_O,
                           v1::BUFFER_ROLE_LSE};
constexpr auto kSequences = {v1::BUFFER_ROLE_SINKS, v1::BUFFER_ROLE_Q_BOUNDS, v1::BUFFER_ROLE_KV_BOUNDS,
                             v1::BUFFER_ROLE_KV_LENGTHS, v1::BUFFER_ROLE_PAGE_TABLE};

// Of K and V of 16 bits.
void AddNoScales(v1::KernelLaunch& launch) {
  AddBuffers(launch, {v1::BUFFER_ROLE_K_SCALE, v1::BUFFER_ROLE_V_SCALE});
  for (int i = 0; i < 4; ++i) launch.add_args()->set_i64(0);
}

// What features_test.cc tests.
std::vector<std::string> WithSwitchesOff(std::vector<std::string> options) {
  for (const char* off : {"-DKV_DTYPE=0", "-DSOFTCAP=0", "-DSINKS=0", "-DVARLEN=0", "-DPAGE_SIZE=0"})
    options.emplace_back(off);
  return options;
}

}  // namespace

std::vector<std::string> Attention::Options(const Problem& problem) const {
  return WithSwitchesOff({"-cl-std=CL1.2", absl::StrCat("-DBLOCK_M=", block_m), absl::StrCat("-DBLOCK_N=", block_n),
                          absl::StrCat("-DTHREADS=", threads), absl::StrCat("-DLANES=", lanes),
                          absl::StrCat("-DVEC=", vec), absl::StrCat("-DLOCAL_KV=", local_kv ? 1 : 0),
                          absl::StrCat("-DUNROLL=", unroll), absl::StrCat("-DHEAD_DIM=", problem.head_dim),
                          absl::StrCat("-DBF16=", problem.dtype == v1::DTYPE_BF16 ? 1 : 0), "-DCOMBINE_ROWS=4",
                          "-DWINDOW=0"});
}

v1::LaunchRecipe Attention::Recipe(const Problem& problem, const v1::Device& device) const {
  v1::LaunchRecipe recipe;
  const bool splits = kv_splits > 1;
  AddScratch(recipe, "partial_o", splits ? kv_splits * Rows(problem) * problem.head_dim * 4 : 0, false);
  AddScratch(recipe, "partial_ml", splits ? kv_splits * Rows(problem) * 8 : 0, false);
  AddScratch(recipe, "counter", groups_per_unit > 0 ? 4 : 0, true);

  const int64_t items = CeilDiv(problem.seq_q, block_m) * kv_splits * problem.batch * problem.heads_q;
  v1::KernelLaunch& main =
      AddLaunch(recipe, "attention", groups_per_unit > 0 ? groups_per_unit * device.compute_units() : items, threads);
  AddBuffers(main, kTensors);
  AddBuffers(main, kSequences);
  for (int i = 0; i < 3; ++i) AddScratchArg(main, i);
  AddShape(main, problem);
  main.add_args()->set_i32(static_cast<int32_t>(kv_splits));
  main.add_args()->set_i32(static_cast<int32_t>(items));
  main.add_args()->set_i32(MaskCode(problem));
  main.add_args()->set_i32(0);  // window
  AddAllStrides(main, problem);
  main.add_args()->set_f32(static_cast<float>(M_LOG2E / std::sqrt(problem.head_dim)));
  main.add_args()->set_f32(0);  // softcap
  AddNoScales(main);
  if (!splits) return recipe;

  v1::KernelLaunch& combine = AddLaunch(recipe, "combine", CeilDiv(Rows(problem), 4), 4 * problem.head_dim / vec);
  AddScratchArg(combine, 0);
  AddScratchArg(combine, 1);
  AddBuffers(combine, {v1::BUFFER_ROLE_O, v1::BUFFER_ROLE_LSE, v1::BUFFER_ROLE_SINKS, v1::BUFFER_ROLE_Q_BOUNDS});
  combine.add_args()->set_i32(static_cast<int32_t>(problem.heads_q));
  combine.add_args()->set_i32(static_cast<int32_t>(problem.seq_q));
  combine.add_args()->set_i32(static_cast<int32_t>(kv_splits));
  combine.add_args()->set_i64(Rows(problem));
  AddStrides(combine, problem, problem.heads_q, problem.seq_q);
  return recipe;
}

std::vector<std::string> ReferenceOptions(const Problem& problem, bool plain) {
  return WithSwitchesOff({"-cl-std=CL1.2", absl::StrCat("-DPLAIN=", plain ? 1 : 0),
                          absl::StrCat("-DHEAD_DIM=", problem.head_dim),
                          absl::StrCat("-DBF16=", problem.dtype == v1::DTYPE_BF16 ? 1 : 0), "-DTHREADS=64",
                          absl::StrCat("-DMASK=", MaskCode(problem))});
}

v1::LaunchRecipe ReferenceRecipe(const Problem& problem) {
  v1::LaunchRecipe recipe;
  v1::KernelLaunch& launch = AddLaunch(recipe, "reference", CeilDiv(Rows(problem), 64), 64);
  AddBuffers(launch, kTensors);
  AddBuffers(launch, kSequences);
  AddShape(launch, problem);
  launch.add_args()->set_i32(0);  // window
  AddAllStrides(launch, problem);
  launch.add_args()->set_f32(static_cast<float>(1 / std::sqrt(problem.head_dim)));
  launch.add_args()->set_f32(0);  // softcap
  launch.add_args()->set_i64(Rows(problem));
  AddNoScales(launch);
  return recipe;
}

v1::LaunchRecipe RowRecipe(const Problem& problem, int64_t threads) {
  v1::LaunchRecipe recipe;
  AddScratch(recipe, "runs", 4 * Rows(problem) * (problem.head_dim + 3), false);  // as much as any family asks for
  v1::KernelLaunch& launch = AddLaunch(recipe, "attention", CeilDiv(Rows(problem), threads), threads);
  AddBuffers(launch, kTensors);
  AddScratchArg(launch, 0);
  AddShape(launch, problem);
  AddMask(launch, problem);
  AddAllStrides(launch, problem);
  launch.add_args()->set_i64(Rows(problem));
  return recipe;
}

}  // namespace attune::testing
