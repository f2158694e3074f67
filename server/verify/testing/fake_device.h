// A device in host memory for tests: an artifact is the name of a host function that stands in for a kernel.
#ifndef ATTUNE_SERVER_VERIFY_TESTING_FAKE_DEVICE_H_
#define ATTUNE_SERVER_VERIFY_TESTING_FAKE_DEVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/device/device.h"

namespace attune::verify {

// A buffer as a kernel sees it: it may write before and after it, as real kernels can.
struct FakePointer {
  std::byte* data = nullptr;
  size_t size = 0;

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};
struct FakeArguments {
  FakePointer q, k, v, o, lse, sinks, q_bounds, kv_bounds, kv_lengths, page_table, k_scale, v_scale;
  std::vector<FakePointer> scratch;
};
using FakeKernel = std::function<absl::Status(const FakeArguments&)>;

// The CUDA back end's check kernels, run on the host.
class FakeInspector : public device::Inspector {
 public:
  absl::StatusOr<std::vector<uint64_t>> Digests(absl::Span<const device::BufferView> ranges, uint64_t key) override;
  absl::StatusOr<Tally> Compare(const device::BufferView& out, Element type, const device::BufferView& reference,
                                float absolute, float relative) override;
  absl::Status Draw(const device::BufferView& to, const Drawing& drawing) override;
  absl::Status Copy(const device::BufferView& to, const device::BufferView& from) override;

  int compared = 0;                     // calls
  std::vector<FakePointer> references;  // of the last calls, the first case's first, as Check makes them
  // What an inspector that cannot be trusted does to its answers.
  std::function<void(std::vector<uint64_t>& digests)> spoil_digests;
  std::function<void(Tally& tally)> spoil_tally;
  std::function<void(FakePointer drawn)> spoil_drawn;
  std::function<void(FakePointer copied)> spoil_copied;
};

class FakeDevice : public device::Device {
 public:
  FakeDevice();

  // What Load finds, by artifact; others are InvalidArgument.
  std::map<std::string, FakeKernel> kernels;
  // What Bind answers for an artifact, when not OK.
  std::map<std::string, absl::Status> bind_errors;
  // Seconds a run takes, by artifact; 10 us otherwise.
  std::map<std::string, std::function<double()>> seconds;
  v1::Device properties;
  device::Telemetry telemetry;
  std::function<absl::StatusOr<double>()> joules;  // what its counter says; null: it has none
  size_t memory_limit = size_t{1} << 30;

  int loads = 0;
  size_t allocated_ever = 0;  // bytes of all calls
  size_t allocated = 0;       // bytes now
  size_t downloaded = 0;      // bytes of all calls
  absl::Duration cold_resolution;
  std::vector<size_t> hot_sets;  // runnables in each call of TimeHot
  double hot_seconds = 0;        // of all runs in these calls

  const v1::Device& info() const override { return properties; }
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes) override;
  absl::Status Upload(device::Buffer& to, size_t offset, absl::Span<const std::byte> from) override;
  absl::Status Download(const device::Buffer& from, size_t offset, absl::Span<std::byte> to) override;
  absl::Status Fill(device::Buffer& to, size_t offset, size_t bytes, std::byte value) override;
  absl::StatusOr<std::unique_ptr<device::Module>> Load(absl::Span<const std::byte> artifact) override;
  absl::StatusOr<std::unique_ptr<device::Runnable>> Bind(device::Module& module, const v1::LaunchRecipe& recipe,
                                                         const device::Bindings& bindings) override;
  absl::StatusOr<double> TimeHot(absl::Span<device::Runnable* const> runnables, int runs) override;
  absl::StatusOr<double> TimeCold(device::Runnable& runnable) override;
  absl::Duration ColdResolution() const override { return cold_resolution; }
  device::Telemetry ReadTelemetry() override { return telemetry; }
  absl::StatusOr<double> ReadJoules() override { return joules ? joules() : device::Device::ReadJoules(); }
  device::Inspector* inspector() override { return inspects ? &fake_inspector : nullptr; }

  bool inspects = false;
  FakeInspector fake_inspector;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_TESTING_FAKE_DEVICE_H_
