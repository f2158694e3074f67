#include "server/supervisor/connection.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/framing.h"
#include "server/base/log.h"
#include "server/supervisor/answers.h"
#include "server/supervisor/tries.h"

namespace attune::supervisor {
namespace {

// Opening a driver for the first time after boot takes seconds.
constexpr absl::Duration kDescribeTimeout = absl::Seconds(60);
// A process that has closed its end is about to exit; its own exit status says more than our signal would.
constexpr absl::Duration kExitGrace = absl::Seconds(2);

// Signals that a process brings upon itself by a fault or a limit; any other may have come from anybody.
bool OwnFault(int signal) {
  switch (signal) {
    case 0:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
    case SIGXCPU:
    case SIGXFSZ:
      return true;
    default:
      return false;
  }
}

const char* ReasonOf(const Process::Exit& exit) {
  if (exit.stopped || !OwnFault(exit.signal)) return "killed";
  return exit.signal == 0 ? "exited" : "fault";
}

const char* ReasonOf(CallFailure failure) {
  switch (failure) {
    case CallFailure::kTimeout:
      return "timeout";
    case CallFailure::kUnsent:
      return "unsent";
    case CallFailure::kDied:  // without an exit to tell why
    case CallFailure::kNone:
      return "exited";
    case CallFailure::kGarbage:
      break;
  }
  return "garbage";
}

// "device" of --role=device.
std::string RoleOf(const std::vector<std::string>& arguments) {
  for (absl::string_view argument : arguments) {
    if (absl::ConsumePrefix(&argument, "--role=")) return std::string(argument);
  }
  return "worker";
}

// "device opencl:0" of --role=device --device=opencl:0.
std::string NameOf(const std::vector<std::string>& arguments) {
  std::string name = "worker";
  for (absl::string_view argument : arguments) {
    if (absl::ConsumePrefix(&argument, "--role=")) name = std::string(argument);
    if (absl::ConsumePrefix(&argument, "--device=")) absl::StrAppend(&name, " ", argument);
  }
  return name;
}

}  // namespace

absl::Status ErrorOf(const worker::v1::Response& response) {
  return absl::Status(static_cast<absl::StatusCode>(response.error_code()), response.error_message());
}

bool IsSpent(const CallResult& result) {
  if (result.failure != CallFailure::kNone) return true;
  const absl::Status error = ErrorOf(result.response);
  return absl::IsAborted(error) || absl::IsInternal(error);
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Start(const std::string& executable,
                                                              const std::vector<std::string>& arguments,
                                                              Environment environment, metrics::Workers* metrics) {
  std::unique_ptr<Connection> connection(new Connection(executable, arguments, environment, metrics));
  if (absl::Status status = connection->Spawn(); !status.ok()) return status;
  return connection;
}

Connection::Connection(std::string executable, std::vector<std::string> arguments, Environment environment,
                       metrics::Workers* metrics)
    : executable_(std::move(executable)),
      arguments_(std::move(arguments)),
      environment_(environment),
      metrics_(metrics),
      name_(NameOf(arguments_)) {}

Connection::~Connection() {
  const std::lock_guard lock(mutex_);
  killed_ = true;
}

absl::Status Connection::Spawn() {
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Spawn(
      executable_, arguments_,
      [name = name_](absl::string_view line) {
        LogWarning("worker output", {{"worker", name}, {"line", line}});
      },
      [this](pid_t pid, const Process::Exit& exit) { LogLost(pid, exit.reason, ReasonOf(exit)); }, environment_);
  if (!process.ok()) {
    LogError("worker does not start", {{"worker", name_}, {"error", process.status().message()}});
    return process.status();
  }
  const std::lock_guard lock(mutex_);
  if (killed_) return absl::CancelledError("the worker was ended");
  process_ = *std::move(process);
  LogInfo("worker started", {{"worker", name_}, {"pid", process_->pid()}});
  if (metrics_ != nullptr) metrics_->Started(RoleOf(arguments_));
  return absl::OkStatus();
}

absl::StatusOr<worker::v1::DescribeResponse> Connection::Describe() {
  worker::v1::Request request;
  request.mutable_describe();
  Tries tries;
  CallResult result = Call(request, kDescribeTimeout);
  while (result.from_outside && tries.Again(result)) {
    if (absl::Status status = Replace(); !status.ok()) return status;
    result = Call(request, kDescribeTimeout);
  }
  if (result.failure != CallFailure::kNone) {
    return absl::UnavailableError(absl::StrCat("'", executable_, "' did not start up: ", result.detail, tries.Words()));
  }
  if (absl::Status status = ErrorOf(result.response); !status.ok()) return status;
  return std::move(*result.response.mutable_describe());
}

absl::Status Connection::Replace() {
  std::unique_ptr<Process> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(process_);
  }
  ended.reset();  // of which nothing more is told
  lost_ = false;
  return Spawn();
}

void Connection::Kill() {
  std::lock_guard lock(mutex_);
  killed_ = true;
  if (process_ != nullptr) process_->Kill();
}

CallResult Connection::Call(const worker::v1::Request& request, absl::Duration timeout) {
  const Deadline deadline = After(timeout);
  CallResult result;
  absl::Status status = WriteMessage(process_->fd(), request, deadline);
  if (status.ok()) status = ReadMessage(process_->fd(), result.response, deadline);
  if (status.ok()) status = CheckAnswer(request, result.response);
  if (!status.ok()) return Failed(status, timeout);
  if (absl::IsAborted(ErrorOf(result.response)))
    LogLost(process_->pid(), result.response.error_message(), "device_fault");
  return result;
}

bool Connection::Lives() {
  const std::optional<Process::Exit> exit = process_->Wait(Deadline::min());
  if (exit.has_value()) LogLost(process_->pid(), exit->reason, ReasonOf(*exit));
  return !exit.has_value();
}

void Connection::LogLost(pid_t pid, absl::string_view cause, const char* reason) {
  const std::lock_guard lock(mutex_);
  if (killed_ || std::exchange(lost_, true)) return;
  LogWarning("worker lost", {{"worker", name_}, {"pid", pid}, {"cause", cause}});
  if (metrics_ != nullptr) metrics_->Lost(RoleOf(arguments_), reason);
}

CallResult Connection::Failed(const absl::Status& status, absl::Duration timeout) {
  CallResult result;
  const char* reason = nullptr;
  if (absl::IsUnavailable(status)) {
    result.failure = CallFailure::kDied;
    const std::optional<Process::Exit> exit = process_->Wait(After(kExitGrace));
    result.detail = exit ? exit->reason : "closed its connection without exiting";
    result.from_outside = exit && (exit->stopped || !OwnFault(exit->signal));
    if (exit.has_value()) reason = ReasonOf(*exit);
  } else if (absl::IsDeadlineExceeded(status)) {
    result.failure = CallFailure::kTimeout;
    result.detail = absl::StrCat("no answer within ", absl::FormatDuration(timeout));
  } else {
    result.failure = absl::IsInvalidArgument(status) ? CallFailure::kUnsent : CallFailure::kGarbage;
    result.detail = std::string(status.message());
  }
  LogLost(process_->pid(), result.detail, reason == nullptr ? ReasonOf(result.failure) : reason);
  process_->Kill();
  process_->Wait(kNever);
  return result;
}

}  // namespace attune::supervisor
