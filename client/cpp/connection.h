// The wire side of Client: one channel, its stub, and how a call is made on it. Private to client/cpp, and the only
// header here that includes gRPC.
#ifndef ATTUNE_CLIENT_CPP_CONNECTION_H_
#define ATTUNE_CLIENT_CPP_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.grpc.pb.h"
#include "client/cpp/clock.h"
#include "client/cpp/retry.h"
#include "client/cpp/status.h"

namespace attune {

enum class Retry { kNo, kOnUnavailable };

// Thread-safe.
class Connection {
 public:
  using Stub = v1::AttuneService::Stub;

  Connection(std::string server, const RetryPolicy& retry, const Clock* clock);

  // Calls `method`, all attempts together within `limit`.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration limit, Retry retry = Retry::kOnUnavailable) {
    const absl::Time deadline = clock_->Now() + limit;
    RetryPolicy policy = retry_;
    if (retry == Retry::kNo) policy.attempts = 1;
    Response response;
    absl::Status status = CallWithRetries(policy, deadline, *clock_, [&] {
      grpc::ClientContext context;
      const absl::Duration left = std::max(deadline - clock_->Now(), absl::ZeroDuration());
      if (left < absl::Hours(24 * 365)) {
        context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(left));
      }
      response.Clear();
      return FromGrpc((stub_.get()->*method)(&context, request, &response), server_);
    });
    if (!status.ok()) return status;
    return response;
  }

  Stub& stub() { return *stub_; }
  const std::string& server() const { return server_; }

 private:
  const std::string server_;
  const RetryPolicy retry_;
  const Clock* const clock_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_CONNECTION_H_
