#include "server/supervisor/tool_worker.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/supervisor/connection.h"
#include "server/supervisor/probe.h"

namespace attune::supervisor {
namespace {

// Of what a program says: a few thousand bytes, but for lists of a device's metrics, whose last ones count too.
constexpr int64_t kMostOutput = 8 << 20;

}  // namespace

absl::StatusOr<worker::v1::ToolResponse> RunTool(const WorkerOptions& options, const ToolRun& run,
                                                 const std::stop_token& stop) {
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connection::Start(options.executable, WorkerArguments("tool", options), Environment::kInherited, options.metrics);
  if (!connection.ok()) return connection.status();
  const std::stop_callback cut_short(stop, [&] { (*connection)->Kill(); });
  worker::v1::Request request;
  *request.mutable_tool()->mutable_command() = {run.command.begin(), run.command.end()};
  request.mutable_tool()->set_directory(run.directory);
  request.mutable_tool()->set_most_output(kMostOutput);
  CallResult result = (*connection)->Call(request, run.most);
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  const std::string name = run.command.empty() ? "" : run.command.front();
  switch (result.failure) {
    case CallFailure::kTimeout:
      return absl::DeadlineExceededError(absl::StrCat("'", name, "' was ended after ", absl::FormatDuration(run.most)));
    case CallFailure::kNone:
      break;
    default:
      return absl::UnavailableError(absl::StrCat("the worker that runs '", name, "' was lost: ", result.detail));
  }
  if (absl::Status status = ErrorOf(result.response); !status.ok()) return status;
  return std::move(*result.response.mutable_tool());
}

}  // namespace attune::supervisor
