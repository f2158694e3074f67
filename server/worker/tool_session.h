// --role=tool: runs one program after another that looks into the processes it starts, such as a profiler.
#ifndef ATTUNE_SERVER_WORKER_TOOL_SESSION_H_
#define ATTUNE_SERVER_WORKER_TOOL_SESSION_H_

#include "absl/status/statusor.h"
#include "server/worker/session.h"

namespace attune::worker {

// What it starts gets this process's environment, with TMPDIR as the request has it, and no descriptor but its
// output's.
class ToolSession : public Session {
 public:
  worker::v1::Response Handle(const worker::v1::Request& request) override;

 private:
  // Unavailable when it cannot be started.
  static absl::StatusOr<worker::v1::ToolResponse> Run(const worker::v1::ToolRequest& request);
};

// Ends the whole process group, this process included, as soon as the peer of `fd` is gone.
void EndGroupWithPeer(int fd);

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_TOOL_SESSION_H_
