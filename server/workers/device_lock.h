// One process a device: two daemons must never time on one GPU.
#ifndef ATTUNE_SERVER_WORKERS_DEVICE_LOCK_H_
#define ATTUNE_SERVER_WORKERS_DEVICE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"

namespace attune::workers {

// An advisory lock (flock) on a file named for the device's UUID, or its id where it has none. The kernel drops it
// when the process ends, however it does.
class DeviceLock {
 public:
  // Creates `directory` when missing. FailedPrecondition names the process that holds the lock.
  static absl::StatusOr<DeviceLock> Take(const std::string& directory, const v1::Device& device);
  DeviceLock(DeviceLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DeviceLock& operator=(DeviceLock&&) = delete;
  ~DeviceLock();

 private:
  explicit DeviceLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace attune::workers

#endif  // ATTUNE_SERVER_WORKERS_DEVICE_LOCK_H_
