// One worker process and the conversation with it.
#ifndef ATTUNE_SERVER_SUPERVISOR_CONNECTION_H_
#define ATTUNE_SERVER_SUPERVISOR_CONNECTION_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/metrics/workers.h"
#include "server/supervisor/process.h"

namespace attune::supervisor {

// How a call ended that brought no response.
enum class CallFailure {
  kNone,
  kTimeout,  // no response by the deadline; the process has been killed
  kDied,     // the process ended, see `exit`
  kGarbage,  // what came is not an answer (answers.h); the process has been killed
  kUnsent,   // the request is too large to be sent; the process has been killed
};

struct CallResult {
  CallFailure failure = CallFailure::kNone;
  worker::v1::Response response;
  std::string detail;         // "killed by SIGSEGV"
  bool from_outside = false;  // with kDied: it was stopped, or killed by a signal that is no fault of its own
};

// Not thread-safe, but for Kill. After a failure the process is gone.
class Connection {
 public:
  // Starts the worker; Unavailable when that fails. The log has its start, what it writes, and, when that happens, its
  // loss with the cause; `metrics`, if any, counts both.
  static absl::StatusOr<std::unique_ptr<Connection>> Start(const std::string& executable,
                                                           const std::vector<std::string>& arguments,
                                                           Environment environment = Environment::kInherited,
                                                           metrics::Workers* metrics = nullptr);
  ~Connection();

  // The first call. A worker that is killed from outside before it answers is replaced, as Tries says. Unavailable when
  // it dies or is silent for a minute; an error that it answers is passed on.
  absl::StatusOr<worker::v1::DescribeResponse> Describe();
  CallResult Call(const worker::v1::Request& request, absl::Duration timeout);
  // Whether the worker still runs; one may end between two calls.
  bool Lives();
  // For good. From any thread: a call in progress ends with kDied.
  void Kill();

 private:
  Connection(std::string executable, std::vector<std::string> arguments, Environment environment,
             metrics::Workers* metrics);

  absl::Status Spawn();

  CallResult Failed(const absl::Status& status, absl::Duration timeout);
  absl::Status Replace();

  // `reason`: one of metrics::Workers::Lost.
  void LogLost(pid_t pid, absl::string_view cause, const char* reason);

  const std::string executable_;
  const std::vector<std::string> arguments_;
  const Environment environment_;
  metrics::Workers* const metrics_;
  const std::string name_;  // in the log
  std::mutex mutex_;        // guards killing against replacing
  bool killed_ = false;     // by Kill or the destructor, which is no loss
  bool lost_ = false;       // the log has it
  std::unique_ptr<Process> process_;
};

// The error that a worker answered with, or OK.
absl::Status ErrorOf(const worker::v1::Response& response);

// Whether the worker is of no more use after this call. Beside a failure: it ends by itself after it has answered with
// a fault of the device (Aborted), and after an error of the driver that is nobody's (Internal: a card that has fallen
// off the bus, memory that cannot be corrected) every call of that process fails, also once the card is back.
bool IsSpent(const CallResult& result);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_CONNECTION_H_
