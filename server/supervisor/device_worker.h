// A device's worker as the daemon sees it. The implementation execs and supervises attune-worker; tests stand in their
// own.
#ifndef ATTUNE_SERVER_SUPERVISOR_DEVICE_WORKER_H_
#define ATTUNE_SERVER_SUPERVISOR_DEVICE_WORKER_H_

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {

// The one process that holds a device. Calls block their thread; one call at a time (callers take turns outside).
// A worker that dies or misses its deadline is replaced, and the call made again where that may have been the host's
// fault (supervisor/tries.h). What ends workers all the same has a verdict (CRASHED, TIMEOUT) where one variant is to
// blame, in Trial and in a PlayOff of one; otherwise the call has an error status. After a respawn the last successful
// Prepare is repeated before the next Trial or PlayOff.
class DeviceWorker {
 public:
  virtual ~DeviceWorker() = default;
  virtual const v1::Device& device() const = 0;
  // Starts the worker if there is none. FailedPrecondition when another process holds the device.
  virtual absl::Status Open() = 0;
  // Whether Open would find the device free of other processes, as far as that is seen without starting one; otherwise
  // what it would say. Any thread may call it, and waits for no call.
  virtual absl::Status Available() = 0;
  virtual absl::StatusOr<worker::v1::PrepareResponse> Prepare(const worker::v1::PrepareRequest& request) = 0;
  virtual absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& request) = 0;
  virtual absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& request) = 0;
  virtual absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& request) = 0;
  // Cuts the calls from now on short when `abort` is requested: the process is ended and the call Cancelled, no verdict
  // comes of it, and the next call has a fresh process. By whoever's turn it is, between two calls.
  virtual void AbortWith(std::stop_token abort) = 0;
  // Gives the device's memory back; a no-op when no process runs.
  virtual void Release() = 0;
  // Ends the process; the call in progress, and every later one, is Cancelled: no verdict comes of it. Any thread may
  // call it, again too.
  virtual void Shutdown() = 0;
};

// FailedPrecondition on a call while another daemon holds the device's lock; the message names its process.
std::unique_ptr<DeviceWorker> MakeDeviceWorker(const WorkerOptions& options, const v1::Device& device);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_DEVICE_WORKER_H_
