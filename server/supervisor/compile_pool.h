// Compile workers as the daemon sees them. The implementation execs and supervises attune-worker; tests stand in their
// own.
#ifndef ATTUNE_SERVER_SUPERVISOR_COMPILE_POOL_H_
#define ATTUNE_SERVER_SUPERVISOR_COMPILE_POOL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"

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
  // "nvrtc 13.0"; Unavailable with the reason when the backend has no compiler here.
  virtual absl::StatusOr<std::string> Toolchain(v1::Backend backend) = 0;
  virtual int size() const = 0;
  // Ends the workers; all that was submitted, and will be, is Cancelled. Any thread may call it, again too.
  virtual void Shutdown() = 0;
};

std::unique_ptr<CompilePool> MakeCompilePool(const WorkerOptions& options, const HostDescription& host);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_COMPILE_POOL_H_
