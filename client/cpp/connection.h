// The wire side of Client: one channel, its stub, and how a call is made on it. Private to client/cpp, and the only
// header here that includes gRPC.
#ifndef ATTUNE_CLIENT_CPP_CONNECTION_H_
#define ATTUNE_CLIENT_CPP_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/access.grpc.pb.h"
#include "attune/v1/blob.grpc.pb.h"
#include "attune/v1/fleet.grpc.pb.h"
#include "attune/v1/service.grpc.pb.h"
#include "client/cpp/clock.h"
#include "client/cpp/retry.h"
#include "client/cpp/status.h"
#include "client/cpp/tls.h"

namespace attune {

enum class Retry { kNo, kOnUnavailable };

// Thread-safe.
class Connection {
 public:
  using Stub = v1::AttuneService::Stub;

  using AccessStub = v1::AccessService::Stub;

  using BlobStub = v1::BlobService::Stub;

  using FleetStub = v1::FleetService::Stub;

  Connection(std::string server, const RetryPolicy& retry, const Clock* clock, std::string token_file,
             const TlsOptions& tls);

  // Calls `method`, all attempts together within `limit`.
  template <typename OneStub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (OneStub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration limit, Retry retry = Retry::kOnUnavailable) {
    const absl::Time deadline = clock_->Now() + limit;
    RetryPolicy policy = retry_;
    if (retry == Retry::kNo) policy.attempts = 1;
    Response response;
    absl::Status status = CallWithRetries(policy, deadline, *clock_, [&] {
      grpc::ClientContext context;
      if (absl::Status identified = Identify(&context); !identified.ok()) return identified;
      const absl::Duration left = std::max(deadline - clock_->Now(), absl::ZeroDuration());
      if (left < absl::Hours(24 * 365)) {
        context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(left));
      }
      response.Clear();
      return FromGrpc((StubOf<OneStub>().*method)(&context, request, &response), server_);
    });
    if (!status.ok()) return status;
    return response;
  }

  // Has the call bring the token, if there is one. The error of a file that cannot be read, or holds no token.
  absl::Status Identify(grpc::ClientContext* context) const;

  Stub& stub() { return *stub_; }
  const std::string& server() const { return server_; }

 private:
  template <typename OneStub>
  OneStub& StubOf() const {
    if constexpr (std::is_same_v<OneStub, AccessStub>) {
      return *access_;
    } else if constexpr (std::is_same_v<OneStub, BlobStub>) {
      return *blobs_;
    } else if constexpr (std::is_same_v<OneStub, FleetStub>) {
      return *fleet_;
    } else {
      return *stub_;
    }
  }

  const std::string server_;
  const RetryPolicy retry_;
  const Clock* const clock_;
  const std::string token_file_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  const std::unique_ptr<AccessStub> access_;
  const std::unique_ptr<BlobStub> blobs_;
  const std::unique_ptr<FleetStub> fleet_;
};

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_CONNECTION_H_
