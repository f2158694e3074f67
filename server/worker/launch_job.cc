#include "server/worker/launch_job.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/attune/problem.h"
#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::worker {
namespace {

constexpr uint64_t kSeed = 1;

// All memory of a launch.
class Memory {
 public:
  explicit Memory(device::Device& device) : device_(device) {}

  // What has no bytes is a null pointer.
  absl::Status Make(size_t bytes, device::BufferView& view) {
    if (bytes == 0) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<device::Buffer>> buffer = device_.Allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    view = {buffer->get(), 0, bytes};
    buffers_.push_back(*std::move(buffer));
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Put(const std::vector<T>& values, device::BufferView& view) {
    if (values.empty()) return absl::OkStatus();
    if (absl::Status status = Make(values.size() * sizeof(T), view); !status.ok()) return status;
    return device_.Upload(*view.buffer, 0,
                          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), view.size));
  }

 private:
  device::Device& device_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;
};

absl::Status PutInputs(const verify::Tensors& inputs, Memory& memory, device::Bindings& bindings) {
  absl::Status status = memory.Put(inputs.q, bindings.q);
  status.Update(inputs.k.empty() ? memory.Put(inputs.k_codes, bindings.k) : memory.Put(inputs.k, bindings.k));
  status.Update(inputs.v.empty() ? memory.Put(inputs.v_codes, bindings.v) : memory.Put(inputs.v, bindings.v));
  status.Update(memory.Put(inputs.sinks, bindings.sinks));
  status.Update(memory.Put(inputs.q_bounds, bindings.q_bounds));
  status.Update(memory.Put(inputs.kv_bounds, bindings.kv_bounds));
  status.Update(memory.Put(inputs.kv_lengths, bindings.kv_lengths));
  status.Update(memory.Put(inputs.page_table, bindings.page_table));
  status.Update(memory.Put(inputs.k_scales, bindings.k_scale));
  status.Update(memory.Put(inputs.v_scales, bindings.v_scale));
  return status;
}

absl::Status MakeOutputs(const Problem& problem, Memory& memory, device::Bindings& bindings) {
  const size_t rows = static_cast<size_t>(verify::QueryRows(problem));
  absl::Status status = memory.Make(rows * problem.head_dim * DTypeBytes(problem.dtype), bindings.o);
  if (problem.lse) status.Update(memory.Make(rows * sizeof(float), bindings.lse));
  return status;
}

absl::Status MakeScratch(device::Device& device, const attune::v1::LaunchRecipe& recipe, Memory& memory,
                         device::Bindings& bindings) {
  for (const attune::v1::ScratchBuffer& scratch : recipe.scratch()) {
    device::BufferView& view = bindings.scratch.emplace_back();
    const auto bytes = static_cast<size_t>(scratch.bytes());
    if (absl::Status status = memory.Make(bytes, view); !status.ok()) return status;
    if (bytes == 0 || !scratch.zero_before_first_run()) continue;
    if (absl::Status status = device.Fill(*view.buffer, 0, bytes, std::byte{0}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Launch(device::Device& device, const worker::v1::LaunchJob& job) {
  const absl::StatusOr<Problem> problem = FromProto(job.problem());
  if (!problem.ok()) return problem.status();
  const attune::v1::LaunchRecipe& recipe = job.candidate().recipe();
  Memory memory(device);
  device::Bindings bindings;
  absl::Status made = PutInputs(verify::MakeInputs(*problem, verify::Distribution::kNormal, kSeed), memory, bindings);
  made.Update(MakeOutputs(*problem, memory, bindings));
  made.Update(MakeScratch(device, recipe, memory, bindings));
  if (!made.ok()) return made;
  const std::string& code = job.candidate().artifact();
  const auto module = device.Load(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(code.data()), code.size()));
  if (!module.ok()) return module.status();
  const auto runnable = device.Bind(**module, recipe, bindings);
  if (!runnable.ok()) return runnable.status();
  for (int run = 0; run < job.runs(); ++run) {
    if (absl::Status status = (*runnable)->Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace attune::worker
