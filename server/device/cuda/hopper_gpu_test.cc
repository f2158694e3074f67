// Tensor maps, clusters and overlapping launches, on a GPU of compute capability 9.0 or later.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/gpu_test.h"

namespace attune::device {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr char kHopperKernels[] = R"(
struct alignas(128) TensorMap { unsigned long long opaque[16]; };
__device__ unsigned Shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

extern __shared__ __align__(1024) unsigned char box[];
__shared__ __align__(8) unsigned long long landed;

// For the copy that follows: one arrival, and `bytes` that must land.
__device__ void Expect(int bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&landed)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(&landed)), "r"(bytes) : "memory");
}
__device__ void Wait() {
  asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
               "@!done bra AGAIN;\n}\n" ::"r"(Shared(&landed)) : "memory");
}

// The box at (x, y), as it lies in shared memory.
extern "C" __global__ void load(const __grid_constant__ TensorMap from, int x, int y, int bytes, unsigned char* out) {
  Expect(bytes);
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%2, %3}], [%4];" ::"r"(Shared(box)), "l"(&from), "r"(x), "r"(y), "r"(Shared(&landed)) : "memory");
  Wait();
  for (int i = 0; i < bytes; ++i) out[i] = box[i];
}

// Rows `offset` to `offset + size` of a tensor to the same rows of another, by one box that may be longer.
extern "C" __global__ void copy_slice(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to,
                                      int offset, int size, int bytes) {
  const int row = (1 << 30) - size, end = offset + size, wrap = 1 << 30;
  Expect(bytes);
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(Shared(box)), "l"(&from), "r"(0), "r"(row), "r"(end), "r"(wrap),
               "r"(Shared(&landed)) : "memory");
  Wait();
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(&to),
               "r"(0), "r"(row), "r"(end), "r"(wrap), "r"(Shared(box)) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void count_zeros(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                                       int* out) {
  for (int i = 0; i < 16; ++i) *out += (a.opaque[i] == 0) + (b.opaque[i] == 0);
}

extern "C" __global__ void cluster_size(int* out) {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
  if (blockIdx.x == 0) *out = size;
}

extern "C" __global__ void add_late(int* sum) {
  asm volatile("griddepcontrol.launch_dependents;");
  const long long start = clock64();
  while (clock64() - start < 100000) {}
  *sum += 1;
}
extern "C" __global__ void double_it(int* sum) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  *sum *= 2;
}
)";

class HopperGpuTest : public GpuTest {
 protected:
  HopperGpuTest() : GpuTest(kHopperKernels) { least_capability_ = 90; }

  std::unique_ptr<Buffer> BufferOf(const std::vector<uint16_t>& values) {
    std::unique_ptr<Buffer> buffer = device_->Allocate(2 * values.size()).value();
    EXPECT_EQ(device_->Upload(*buffer, 0, Bytes(values)), absl::OkStatus());
    return buffer;
  }
  std::vector<uint16_t> Read(const Buffer& buffer) {
    std::vector<uint16_t> values(buffer.size() / 2);
    EXPECT_EQ(device_->Download(buffer, 0, MutableBytes(&values)), absl::OkStatus());
    return values;
  }
};

v1::KernelArg Map(v1::BufferRole role, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                  const std::vector<int>& box) {
  v1::KernelArg arg;
  v1::TensorMap& map = *arg.mutable_tensor_map();
  map.mutable_base()->set_role(role);
  map.set_element(v1::TensorMap::ELEMENT_F16);
  map.mutable_dims()->Add(dims.begin(), dims.end());
  map.mutable_strides()->Add(strides.begin(), strides.end());
  map.mutable_box()->Add(box.begin(), box.end());
  return arg;
}

std::vector<uint16_t> Numbered(size_t count) {
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint16_t>(i + 1);
  return values;
}

// 40 rows of 64; the map begins at the third and has 38.
TEST_F(HopperGpuTest, CopiesABoxSwizzledAndZeroBeyondTheTensor) {
  OPEN_OR_SKIP();
  const std::vector<uint16_t> values = Numbered(40 * 64);
  std::unique_ptr<Buffer> in = BufferOf(values), out = BufferOf(std::vector<uint16_t>(16 * 64, 0xffff));
  Bindings bindings;
  bindings.q = {in.get(), 0, in->size()};
  bindings.o = {out.get(), 0, out->size()};
  v1::KernelArg map = Map(v1::BUFFER_ROLE_Q, {64, 38}, {128}, {64, 16});
  map.mutable_tensor_map()->set_base_offset(2 * 128);
  map.mutable_tensor_map()->set_swizzle_bytes(128);
  map.mutable_tensor_map()->set_l2_promotion_bytes(256);
  auto runnable = Bind(
      Recipe("load", 1, 1, {map, I32(0), I32(32), I32(16 * 128), BufferArg(v1::BUFFER_ROLE_O)}, 16 * 128), bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_EQ((*runnable)->Run(), absl::OkStatus());
  std::vector<uint16_t> expected(16 * 64, 0);
  for (size_t j = 0; j + 32 < 38; ++j) {
    for (size_t d = 0; d < 64; ++d) expected[64 * j + 8 * (d / 8 ^ j % 8) + d % 8] = values[64 * (2 + 32 + j) + d];
  }
  EXPECT_THAT(Read(*out), ElementsAreArray(expected));
}

// Two extra dimensions whose addresses wrap around modulo 2^64 bound a slice that the recipe does not know: Triton's
// ragged tensor maps (python/triton/tools/ragged_tma.py).
TEST_F(HopperGpuTest, CopiesASliceWhoseExtentOnlyTheKernelKnows) {
  OPEN_OR_SKIP();
  constexpr int64_t kRow = 64, kMany = 0x7fff0000;
  constexpr size_t kOffset = 5, kSize = 7, kColumns = 32;
  const std::vector<uint16_t> values = Numbered(20 * kColumns);
  std::unique_ptr<Buffer> in = BufferOf(values), out = BufferOf(std::vector<uint16_t>(values.size(), 0xffff));
  Bindings bindings;
  bindings.q = {in.get(), 0, in->size()};
  bindings.o = {out.get(), 0, out->size()};
  const auto ragged = [&](v1::BufferRole role) {
    return Map(role, {kColumns, int64_t{1} << 30, kMany, kMany}, {kRow, kRow, (int64_t{1} << 35) - kRow},
               {kColumns, 16, 1, 1});
  };
  auto runnable =
      Bind(Recipe("copy_slice", 1, 1,
                  {ragged(v1::BUFFER_ROLE_Q), ragged(v1::BUFFER_ROLE_O), I32(kOffset), I32(kSize), I32(16 * kRow)},
                  16 * kRow),
           bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_EQ((*runnable)->Run(), absl::OkStatus());
  std::vector<uint16_t> expected(values.size(), 0xffff);
  std::copy_n(values.begin() + kOffset * kColumns, kSize * kColumns, expected.begin() + kOffset * kColumns);
  EXPECT_THAT(Read(*out), ElementsAreArray(expected));
}

TEST_F(HopperGpuTest, GivesZerosForANullTensorAndForNone) {
  OPEN_OR_SKIP();
  std::unique_ptr<Buffer> counter = Counter();
  Bindings bindings;
  bindings.o = {counter.get(), 0, 4};
  v1::KernelArg none;
  none.mutable_tensor_map();
  const v1::KernelArg null = Map(v1::BUFFER_ROLE_LSE, {64, 38}, {128}, {64, 16});
  auto runnable = Bind(Recipe("count_zeros", 1, 1, {null, none, BufferArg(v1::BUFFER_ROLE_O)}), bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_EQ((*runnable)->Run(), absl::OkStatus());
  EXPECT_EQ(ReadCounter(*counter), 32);
}

TEST_F(HopperGpuTest, RefusesMapsThatTheDriverDoesNotTake) {
  OPEN_OR_SKIP();
  std::unique_ptr<Buffer> counter = Counter();
  Bindings bindings;
  bindings.q = bindings.o = {counter.get(), 0, 256};
  const v1::KernelArg map = Map(v1::BUFFER_ROLE_Q, {64, 38}, {130}, {64, 16});
  const absl::Status status =
      Bind(Recipe("load", 1, 1, {map, I32(0), I32(0), I32(128), BufferArg(v1::BUFFER_ROLE_O)}, 128), bindings).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("kernel load: argument 0: strides[0] is 130"));
}

TEST_F(HopperGpuTest, LaunchesInClusters) {
  OPEN_OR_SKIP();
  std::unique_ptr<Buffer> counter = Counter();
  Bindings bindings;
  bindings.o = {counter.get(), 0, 4};
  for (const int size : {1, 4, 16}) {
    v1::LaunchRecipe recipe = Recipe("cluster_size", 32, 32, {BufferArg(v1::BUFFER_ROLE_O)});
    v1::Dim3& cluster = *recipe.mutable_launches(0)->mutable_cluster();
    cluster.set_x(size);
    cluster.set_y(1);
    cluster.set_z(1);
    auto runnable = Bind(recipe, bindings);
    ASSERT_TRUE(runnable.ok()) << runnable.status();
    ASSERT_EQ((*runnable)->Run(), absl::OkStatus());
    EXPECT_EQ(ReadCounter(*counter), size);
  }
}

TEST_F(HopperGpuTest, RefusesClustersThatDoNotDivideTheGrid) {
  OPEN_OR_SKIP();
  v1::LaunchRecipe recipe = Recipe("cluster_size", 30, 32, {BufferArg(v1::BUFFER_ROLE_O)});
  v1::Dim3& cluster = *recipe.mutable_launches(0)->mutable_cluster();
  cluster.set_x(4);
  cluster.set_y(1);
  cluster.set_z(1);
  EXPECT_EQ(Bind(recipe).status().code(), absl::StatusCode::kInvalidArgument);
}

v1::LaunchRecipe Overlapping() {
  v1::LaunchRecipe recipe = Recipe("add_late", 1, 1, {BufferArg(v1::BUFFER_ROLE_O)});
  recipe.MergeFrom(Recipe("double_it", 1, 1, {BufferArg(v1::BUFFER_ROLE_O)}));
  recipe.mutable_launches(1)->set_overlaps_previous(true);
  return recipe;
}

// Each run adds 1 and doubles; the second kernel may be there before the first has ended, the next run may not.
TEST_F(HopperGpuTest, OverlapsLaunchesOfARunAndNotRuns) {
  OPEN_OR_SKIP();
  std::unique_ptr<Buffer> counter = Counter();
  Bindings bindings;
  bindings.o = {counter.get(), 0, 4};
  auto runnable = Bind(Overlapping(), bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_EQ((*runnable)->Run(), absl::OkStatus());
  EXPECT_EQ(ReadCounter(*counter), 2);
  HotUs(**runnable, 3);  // warms up with as many
  EXPECT_EQ(ReadCounter(*counter), 254);
}

TEST_F(HopperGpuTest, RefusesAFirstLaunchThatOverlaps) {
  OPEN_OR_SKIP();
  v1::LaunchRecipe recipe = Overlapping();
  recipe.mutable_launches(0)->set_overlaps_previous(true);
  EXPECT_EQ(Bind(recipe).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attune::device
