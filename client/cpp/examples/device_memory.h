// What the examples need of the driver beside the launcher: memory, copies, a stream, a graph.
#ifndef ATTUNE_CLIENT_CPP_EXAMPLES_DEVICE_MEMORY_H_
#define ATTUNE_CLIENT_CPP_EXAMPLES_DEVICE_MEMORY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/launch/tensors.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"

namespace attune::examples {

// A GPU with one stream of its own; its primary context is made current in the thread that opens it.
class Gpu {
 public:
  static absl::StatusOr<std::unique_ptr<Gpu>> Open(int ordinal);

  launch::Stream stream() const { return stream_.get(); }
  const device::cuda::DriverApi& driver() const { return *driver_; }

  // Memory of `bytes` bytes, kept as long as the Gpu; at least one byte is allocated.
  absl::StatusOr<launch::Address> Allocate(size_t bytes);
  absl::Status Upload(launch::Address to, const void* from, size_t bytes);
  absl::Status Download(void* to, launch::Address from, size_t bytes);
  absl::Status Fill(launch::Address to, unsigned char value, size_t bytes);
  absl::Status Wait();

  // A graph of what `enqueue` enqueues on the stream.
  absl::StatusOr<device::cuda::GraphExec> Capture(const std::function<absl::Status()>& enqueue);
  absl::Status Replay(const device::cuda::GraphExec& graph);

 private:
  explicit Gpu(std::shared_ptr<const device::cuda::DriverApi> driver) : driver_(std::move(driver)) {}

  const std::shared_ptr<const device::cuda::DriverApi> driver_;
  device::cuda::PrimaryContext context_;
  device::cuda::Stream stream_;
  std::vector<device::cuda::Memory> memory_;
};

// Microseconds of host time that calls of `call` take, each by itself: 1,000 of them in rounds of 100, after each of
// which the GPU is waited for, so that no call waits for room in the stream. The first round does not count.
struct HostTime {
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
};
absl::StatusOr<HostTime> TimeOnHost(Gpu& gpu, const std::function<absl::Status()>& call);

}  // namespace attune::examples

#endif  // ATTUNE_CLIENT_CPP_EXAMPLES_DEVICE_MEMORY_H_
