// One worker process and the conversation with it.
#ifndef ATTUNE_SERVER_WORKERS_CONNECTION_H_
#define ATTUNE_SERVER_WORKERS_CONNECTION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/workers/process.h"

namespace attune::workers {

// How a call ended that brought no response.
enum class CallFailure {
  kNone,
  kTimeout,  // no response by the deadline; the process has been killed
  kDied,     // the process ended, see `exit`
  kGarbage,  // what came is no message, or the message could not be sent; the process has been killed
};

struct CallResult {
  CallFailure failure = CallFailure::kNone;
  worker::v1::Response response;
  std::string detail;  // "killed by SIGSEGV"
  int signal = 0;      // that killed it, with kDied
};

// Not thread-safe, but for Kill. After a failure the process is gone.
class Connection {
 public:
  // Starts the worker; Unavailable when that fails.
  static absl::StatusOr<std::unique_ptr<Connection>> Start(const std::string& executable,
                                                           const std::vector<std::string>& arguments);

  // The first call. Unavailable when the worker dies or is silent for a minute; an error that it answers is passed on.
  absl::StatusOr<worker::v1::DescribeResponse> Describe();
  CallResult Call(const worker::v1::Request& request, absl::Duration timeout);
  // From any thread: a call in progress ends with kDied.
  void Kill() { process_->Kill(); }

 private:
  Connection(std::string executable, std::unique_ptr<Process> process)
      : executable_(std::move(executable)), process_(std::move(process)) {}

  CallResult Failed(const absl::Status& status, absl::Duration timeout);

  std::string executable_;
  std::unique_ptr<Process> process_;
};

// The error that a worker answered with, or OK.
absl::Status ErrorOf(const worker::v1::Response& response);

}  // namespace attune::workers

#endif  // ATTUNE_SERVER_WORKERS_CONNECTION_H_
