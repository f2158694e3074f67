// --role=compile and --role=probe: what the host's backends can do, and compiling with them.
#ifndef ATTUNE_SERVER_WORKER_COMPILE_SESSION_H_
#define ATTUNE_SERVER_WORKER_COMPILE_SESSION_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/worker/session.h"

namespace attune::worker {

class CompileSession : public Session {
 public:
  explicit CompileSession(std::vector<std::unique_ptr<device::Backend>> backends) : backends_(std::move(backends)) {}
  worker::v1::Response Handle(const worker::v1::Request& request) override;

 private:
  absl::StatusOr<worker::v1::CompileResponse> Compile(const worker::v1::CompileRequest& request);
  absl::StatusOr<device::Compiler*> CompilerOf(attune::v1::Backend backend);

  std::vector<std::unique_ptr<device::Backend>> backends_;
  std::map<attune::v1::Backend, std::unique_ptr<device::Compiler>> compilers_;
};

// Describes backends, with their compilers' names, and devices; serves nothing else.
class ProbeSession : public Session {
 public:
  explicit ProbeSession(std::vector<std::unique_ptr<device::Backend>> backends) : backends_(std::move(backends)) {}
  worker::v1::Response Handle(const worker::v1::Request& request) override;

 private:
  std::vector<std::unique_ptr<device::Backend>> backends_;
};

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_COMPILE_SESSION_H_
