#include "server/workers/connection.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/workers/framing.h"

namespace attune::workers {
namespace {

// Opening a driver for the first time after boot takes seconds.
constexpr absl::Duration kDescribeTimeout = absl::Seconds(60);
// A process that has closed its end is about to exit; its own exit status says more than our signal would.
constexpr absl::Duration kExitGrace = absl::Seconds(2);

}  // namespace

absl::Status ErrorOf(const worker::v1::Response& response) {
  return absl::Status(static_cast<absl::StatusCode>(response.error_code()), response.error_message());
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Start(const std::string& executable,
                                                              const std::vector<std::string>& arguments) {
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Spawn(executable, arguments);
  if (!process.ok()) return process.status();
  return std::unique_ptr<Connection>(new Connection(executable, *std::move(process)));
}

absl::StatusOr<worker::v1::DescribeResponse> Connection::Describe() {
  worker::v1::Request request;
  request.mutable_describe();
  CallResult result = Call(request, kDescribeTimeout);
  if (result.failure != CallFailure::kNone) {
    return absl::UnavailableError(absl::StrCat("'", executable_, "' did not start up: ", result.detail));
  }
  if (absl::Status status = ErrorOf(result.response); !status.ok()) return status;
  return std::move(*result.response.mutable_describe());
}

CallResult Connection::Call(const worker::v1::Request& request, absl::Duration timeout) {
  const Deadline deadline = After(timeout);
  CallResult result;
  absl::Status status = WriteMessage(process_->fd(), request, deadline);
  if (status.ok()) status = ReadMessage(process_->fd(), result.response, deadline);
  return status.ok() ? std::move(result) : Failed(status, timeout);
}

CallResult Connection::Failed(const absl::Status& status, absl::Duration timeout) {
  CallResult result;
  if (absl::IsUnavailable(status)) {
    result.failure = CallFailure::kDied;
    const std::optional<Process::Exit> exit = process_->Wait(After(kExitGrace));
    result.detail = exit ? exit->reason : "closed its connection without exiting";
    result.signal = exit ? exit->signal : 0;
  } else if (absl::IsDeadlineExceeded(status)) {
    result.failure = CallFailure::kTimeout;
    result.detail = absl::StrCat("no answer within ", absl::FormatDuration(timeout));
  } else {
    result.failure = CallFailure::kGarbage;
    result.detail = std::string(status.message());
  }
  process_->Kill();
  process_->Wait(kNever);
  return result;
}

}  // namespace attune::workers
