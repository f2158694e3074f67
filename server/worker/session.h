// The worker's side of the conversation: a session answers requests, Serve brings them to it.
#ifndef ATTUNE_SERVER_WORKER_SESSION_H_
#define ATTUNE_SERVER_WORKER_SESSION_H_

#include <utility>

#include "absl/status/status.h"
#include "attune/worker/v1/worker.pb.h"

namespace attune::worker {

class Session {
 public:
  virtual ~Session() = default;
  virtual worker::v1::Response Handle(const worker::v1::Request& request) = 0;
};

worker::v1::Response ErrorResponse(const absl::Status& status);
// For a request that the role does not serve.
worker::v1::Response NotServed(const worker::v1::Request& request, const char* role);

// Answers everything with one error: why the worker could not start.
class FailedSession : public Session {
 public:
  explicit FailedSession(absl::Status why) : why_(std::move(why)) {}
  worker::v1::Response Handle(const worker::v1::Request&) override { return ErrorResponse(why_); }

 private:
  absl::Status why_;
};

// Answers requests on `fd` until the peer goes away (OK), a message is bad, or an answer was Aborted: the device has
// faulted and this process is of no more use.
absl::Status Serve(int fd, Session& session);

// Ends the process, whatever its other threads do, as soon as the peer of `fd` is gone.
void ExitWithPeer(int fd);

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_SESSION_H_
