// One process a device: two daemons must never time on one GPU.
#ifndef ATTUNE_SERVER_WORKER_DEVICE_LOCK_H_
#define ATTUNE_SERVER_WORKER_DEVICE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"

namespace attune::worker {

// An advisory lock on a file named for the device's UUID, or its id where it has none. It is a POSIX record lock and
// not flock: it belongs to this process alone, so that no child that a kernel forks can hold the device after it, and
// the kernel both drops it when the process ends, however it does, and names its holder. One lock a device and process:
// within a process record locks do not exclude each other.
class DeviceLock {
 public:
  // Creates `directory` when missing. FailedPrecondition names the process that holds the lock, or says why `directory`
  // is not safe: it, and the file in it, must not be symbolic links, and nobody but its owner (this user or root) and
  // its group may write to it; anyone else could keep the device from being used.
  static absl::StatusOr<DeviceLock> Take(const std::string& directory, const attune::v1::Device& device);
  // The first part of Take, before the worker is confined to what is there.
  static absl::Status MakeDirectory(const std::string& directory);
  DeviceLock(DeviceLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DeviceLock& operator=(DeviceLock&&) = delete;
  ~DeviceLock();

 private:
  explicit DeviceLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_DEVICE_LOCK_H_
