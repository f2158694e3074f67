// A program of the host's that looks into processes, such as a profiler, run for the daemon by a worker of its own.
#ifndef ATTUNE_SERVER_SUPERVISOR_TOOL_WORKER_H_
#define ATTUNE_SERVER_SUPERVISOR_TOOL_WORKER_H_

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {

struct ToolRun {
  std::vector<std::string> command;  // the executable's path first
  std::string directory;             // where it runs, and keeps its temporary files
  absl::Duration most;
};

// Blocks until the program has ended; then all that it has started ends, too, and does so when the daemon dies.
// DeadlineExceeded after `most`, Cancelled when stopped; Unavailable when it cannot be started, or its worker is lost.
absl::StatusOr<worker::v1::ToolResponse> RunTool(const WorkerOptions& options, const ToolRun& run,
                                                 const std::stop_token& stop);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_TOOL_WORKER_H_
