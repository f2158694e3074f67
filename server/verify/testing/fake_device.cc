#include "server/verify/testing/fake_device.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/cuda/check/testing/host_kernels.h"

namespace attune::verify {
namespace {

namespace kernels = device::cuda::host_kernels;

class HostBuffer : public device::Buffer {
 public:
  HostBuffer(size_t bytes, size_t& allocated) : bytes_(bytes), allocated_(allocated) { allocated_ += bytes; }
  ~HostBuffer() override { allocated_ -= bytes_.size(); }
  size_t size() const override { return bytes_.size(); }
  std::byte* data() { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
  size_t& allocated_;
};

class HostModule : public device::Module {
 public:
  HostModule(std::string name, FakeKernel kernel) : name(std::move(name)), kernel(std::move(kernel)) {}
  const std::string name;
  const FakeKernel kernel;
};

class HostRunnable : public device::Runnable {
 public:
  HostRunnable(HostModule& module, FakeArguments arguments) : module(module), arguments_(std::move(arguments)) {}
  absl::Status Run() override { return module.kernel(arguments_); }
  HostModule& module;

 private:
  FakeArguments arguments_;
};

FakePointer Pointer(const device::BufferView& view) {
  if (view.buffer == nullptr) return {};
  return {static_cast<HostBuffer*>(view.buffer)->data() + view.offset, view.size};
}

absl::Status InRange(const device::Buffer& buffer, size_t offset, size_t bytes) {
  if (offset <= buffer.size() && bytes <= buffer.size() - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("bytes ", offset, " to ", offset + bytes, " of a buffer of ", buffer.size()));
}

}  // namespace

FakeDevice::FakeDevice() {
  properties.set_id("fake:0");
  properties.set_model("Fake");
  properties.set_l2_bytes(0);
  properties.set_memory_bytes(int64_t{1} << 30);
}

absl::StatusOr<std::unique_ptr<device::Buffer>> FakeDevice::Allocate(size_t bytes) {
  if (allocated + bytes > memory_limit) return absl::ResourceExhaustedError("the fake device is full");
  allocated_ever += bytes;
  return std::make_unique<HostBuffer>(bytes, allocated);
}

absl::Status FakeDevice::Upload(device::Buffer& to, size_t offset, absl::Span<const std::byte> from) {
  if (absl::Status status = InRange(to, offset, from.size()); !status.ok()) return status;
  if (!from.empty()) std::memcpy(static_cast<HostBuffer&>(to).data() + offset, from.data(), from.size());
  return absl::OkStatus();
}

absl::Status FakeDevice::Download(const device::Buffer& from, size_t offset, absl::Span<std::byte> to) {
  downloaded += to.size();
  if (absl::Status status = InRange(from, offset, to.size()); !status.ok()) return status;
  auto& buffer = const_cast<HostBuffer&>(static_cast<const HostBuffer&>(from));
  if (!to.empty()) std::memcpy(to.data(), buffer.data() + offset, to.size());
  return absl::OkStatus();
}

absl::Status FakeDevice::Fill(device::Buffer& to, size_t offset, size_t bytes, std::byte value) {
  if (absl::Status status = InRange(to, offset, bytes); !status.ok()) return status;
  std::memset(static_cast<HostBuffer&>(to).data() + offset, static_cast<int>(value), bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<device::Module>> FakeDevice::Load(absl::Span<const std::byte> artifact) {
  ++loads;
  std::string name(reinterpret_cast<const char*>(artifact.data()), artifact.size());
  const auto found = kernels.find(name);
  if (found == kernels.end()) return absl::InvalidArgumentError(absl::StrCat("no fake kernel '", name, "'"));
  return std::make_unique<HostModule>(name, found->second);
}

absl::StatusOr<std::unique_ptr<device::Runnable>> FakeDevice::Bind(device::Module& module,
                                                                   const v1::LaunchRecipe& recipe,
                                                                   const device::Bindings& bindings) {
  auto& host_module = static_cast<HostModule&>(module);
  const auto error = bind_errors.find(host_module.name);
  if (error != bind_errors.end()) return error->second;
  if (static_cast<int>(bindings.scratch.size()) != recipe.scratch_size()) {
    return absl::InvalidArgumentError("the recipe's scratch is not bound");
  }
  FakeArguments arguments = {Pointer(bindings.q),
                             Pointer(bindings.k),
                             Pointer(bindings.v),
                             Pointer(bindings.o),
                             Pointer(bindings.lse),
                             Pointer(bindings.sinks),
                             Pointer(bindings.q_bounds),
                             Pointer(bindings.kv_bounds),
                             Pointer(bindings.kv_lengths),
                             Pointer(bindings.page_table),
                             Pointer(bindings.k_scale),
                             Pointer(bindings.v_scale),
                             {}};
  for (const device::BufferView& view : bindings.scratch) arguments.scratch.push_back(Pointer(view));
  return std::make_unique<HostRunnable>(host_module, std::move(arguments));
}

absl::StatusOr<std::vector<uint64_t>> FakeInspector::Digests(absl::Span<const device::BufferView> ranges,
                                                             uint64_t key) {
  std::vector<uint64_t> digests;
  for (const device::BufferView& range : ranges) {
    if (range.size == 0) {
      digests.push_back(0);
      continue;
    }
    if (absl::Status status = InRange(*range.buffer, range.offset, range.size); !status.ok()) return status;
    kernels::Ranges device_ranges = {};
    device_ranges.of[0] = {reinterpret_cast<uintptr_t>(Pointer(range).data), range.size};
    kernels::u64 sum = 0;
    kernels::attune_digest(device_ranges, key, &sum);
    digests.push_back(sum);
  }
  if (spoil_digests) spoil_digests(digests);
  return digests;
}

absl::StatusOr<device::Inspector::Tally> FakeInspector::Compare(const device::BufferView& out, Element type,
                                                                const device::BufferView& reference, float absolute,
                                                                float relative) {
  ++compared;
  if (type != Element::kF32) references.push_back(Pointer(reference));
  const size_t elements = reference.size / sizeof(float);
  kernels::Tally found = {};
  kernels::attune_compare(Pointer(out).data, static_cast<int>(type), Pointer(reference).as<float>(), elements, absolute,
                          relative, &found);
  if (found.seen != elements) return absl::InternalError("elements were left out");
  Tally tally = {static_cast<int64_t>(found.wrong), std::bit_cast<float>(found.max_error),
                 std::bit_cast<float>(found.max_reference)};
  if (spoil_tally) spoil_tally(tally);
  return tally;
}

absl::Status FakeInspector::Draw(const device::BufferView& to, const Drawing& drawing) {
  kernels::attune_draw(Pointer(to).as<uint16_t>(), to.size / sizeof(uint16_t), drawing.table.data(),
                       {drawing.key, static_cast<uint64_t>(drawing.row), drawing.other, drawing.rows, drawing.surely});
  if (spoil_drawn) spoil_drawn(Pointer(to));
  return absl::OkStatus();
}

absl::Status FakeInspector::Copy(const device::BufferView& to, const device::BufferView& from) {
  if (to.size > 0) std::memmove(Pointer(to).data, Pointer(from).data, to.size);
  if (spoil_copied) spoil_copied(Pointer(to));
  return absl::OkStatus();
}

absl::StatusOr<double> FakeDevice::TimeHot(absl::Span<device::Runnable* const> runnables, int runs) {
  hot_sets.push_back(runnables.size());
  for (int i = 1; i < runs; ++i) {
    if (absl::Status status = runnables[static_cast<size_t>(i) % runnables.size()]->Run(); !status.ok()) return status;
  }
  const absl::StatusOr<double> seconds = TimeCold(*runnables.front());
  if (seconds.ok()) hot_seconds += *seconds * runs;
  return seconds;
}

absl::StatusOr<double> FakeDevice::TimeCold(device::Runnable& runnable) {
  if (absl::Status status = runnable.Run(); !status.ok()) return status;
  const auto found = seconds.find(static_cast<HostRunnable&>(runnable).module.name);
  return found == seconds.end() ? 10e-6 : found->second();
}

}  // namespace attune::verify
