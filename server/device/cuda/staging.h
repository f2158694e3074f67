// Large copies between pageable memory and the device: through two pinned pieces, one of which crosses the bus while
// several threads fill or empty the other. The driver's own way of it has one thread.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_STAGING_H_
#define ATTUNE_SERVER_DEVICE_CUDA_STAGING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"

namespace attune::device::cuda {

class Staging {
 public:
  // `api` and `stream` outlive it. Pinned memory is taken at the first large copy; where there is none left, copies are
  // the driver's.
  Staging(const DriverApi& api, StreamHandle stream) : api_(api), stream_(stream) {}

  // In the stream's order; both return when all is done.
  absl::Status Upload(DevicePointer to, absl::Span<const std::byte> from);
  absl::Status Download(DevicePointer from, absl::Span<std::byte> to);

 private:
  // Whether there are two pieces.
  bool Ready();
  std::byte* piece(size_t number) const { return static_cast<std::byte*>(pieces_[number % 2].get()); }

  const DriverApi& api_;
  const StreamHandle stream_;
  bool asked_ = false;
  HostMemory pieces_[2];
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_STAGING_H_
