// What the tuning loop sees of the worker processes. Implementations exec and supervise attune-worker; tests stand in
// their own.
#ifndef ATTUNE_SERVER_SUPERVISOR_WORKERS_H_
#define ATTUNE_SERVER_SUPERVISOR_WORKERS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/device.pb.h"
#include "attune/worker/v1/worker.pb.h"

namespace attune::supervisor {

// A pool of compile workers, one process a core. Thread-safe.
class CompilePool {
 public:
  virtual ~CompilePool() = default;
  // Queues one compile; among equal priorities first come, first served; higher priority first. One that is queued or
  // running is not done twice at once: who submits the same request shares its response. `done` runs on a pool thread
  // and must not block. A response's verdict is OK, COMPILE_ERROR, TIMEOUT or CRASHED, the last two where fresh workers
  // ended alike (supervisor/tries.h); an error status means LOST: Cancelled after Shutdown, Unavailable when the back
  // end has no compiler here.
  using Done = std::function<void(absl::StatusOr<worker::v1::CompileResponse>)>;
  virtual void Submit(worker::v1::CompileRequest request, int priority, Done done) = 0;
  // "nvrtc 13.0"; Unavailable with the reason when the back end has no compiler here.
  virtual absl::StatusOr<std::string> Toolchain(v1::Backend backend) = 0;
  virtual int size() const = 0;
  // Ends the workers; all that was submitted, and will be, is Cancelled. Any thread may call it, again too.
  virtual void Shutdown() = 0;
};

// The one process that holds a device. Calls block their thread; one call at a time (callers take turns outside).
// A worker that dies or misses its deadline is replaced, and the call made again where that may have been the host's
// fault (supervisor/tries.h). What ends workers all the same has a verdict (CRASHED, TIMEOUT) where one variant is to
// blame, in Trial and in a PlayOff of one; otherwise the call has an error status. After a respawn the last successful
// Prepare is repeated before the next Trial or PlayOff.
class DeviceWorker {
 public:
  virtual ~DeviceWorker() = default;
  virtual const v1::Device& device() const = 0;
  virtual absl::StatusOr<worker::v1::PrepareResponse> Prepare(const worker::v1::PrepareRequest& request) = 0;
  virtual absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& request) = 0;
  virtual absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& request) = 0;
  virtual absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& request) = 0;
  // Gives the device's memory back; a no-op when no process runs.
  virtual void Release() = 0;
  // Ends the process; the call in progress, and every later one, is Cancelled: no verdict comes of it. Any thread may
  // call it, again too.
  virtual void Shutdown() = 0;
};

struct WorkerOptions {
  std::string executable;   // path of attune-worker
  int compile_workers = 0;  // 0: one a core
  absl::Duration compile_timeout = absl::Seconds(120);
  absl::Duration trial_timeout = absl::Seconds(10);
  absl::Duration prepare_timeout = absl::Seconds(120);
  absl::Duration play_off_timeout = absl::Seconds(60);
  std::string lock_dir;  // of the device locks; created when missing
  std::string emulate;   // passed on as --emulate
};

struct HostDescription {
  std::vector<v1::BackendStatus> backends;
  std::vector<v1::Device> devices;
};
// Asks a short-lived worker what the host has, so that the daemon itself never opens a driver.
absl::StatusOr<HostDescription> ProbeHost(const WorkerOptions& options);

std::unique_ptr<CompilePool> MakeCompilePool(const WorkerOptions& options, const HostDescription& host);
// FailedPrecondition on a call while another daemon holds the device's lock; the message names its process.
std::unique_ptr<DeviceWorker> MakeDeviceWorker(const WorkerOptions& options, const v1::Device& device);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_WORKERS_H_
