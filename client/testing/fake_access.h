// The access service with canned answers: one token, "nightly", of a tuner.
#ifndef ATTUNE_CLIENT_TESTING_FAKE_ACCESS_H_
#define ATTUNE_CLIENT_TESTING_FAKE_ACCESS_H_

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <string>

#include "attune/v1/access.grpc.pb.h"

namespace attune::testing {

// What the call brings for its authorization; empty: nothing.
std::string AuthorizationOf(const grpc::ServerContext& context);

// Thread-safe.
class FakeAccess : public v1::AccessService::Service {
 public:
  // That of the last call.
  std::string authorization() const;
  v1::CreateTokenRequest last_create() const;

  grpc::Status GetCaller(grpc::ServerContext*, const v1::GetCallerRequest*, v1::Caller*) override;
  grpc::Status CreateToken(grpc::ServerContext*, const v1::CreateTokenRequest*, v1::CreateTokenResponse*) override;
  grpc::Status ListTokens(grpc::ServerContext*, const v1::ListTokensRequest*, v1::ListTokensResponse*) override;
  grpc::Status RevokeToken(grpc::ServerContext*, const v1::RevokeTokenRequest*, v1::Token*) override;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::string authorization_;
  v1::CreateTokenRequest last_create_;
};

}  // namespace attune::testing

#endif  // ATTUNE_CLIENT_TESTING_FAKE_ACCESS_H_
