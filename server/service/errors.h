// Every error that leaves the service: a status code, one line for people, and a google.rpc.ErrorInfo for programs.
#ifndef ATTUNE_SERVER_SERVICE_ERRORS_H_
#define ATTUNE_SERVER_SERVICE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/rpc.pb.h"
#include "grpcpp/support/status.h"

namespace attune::service {

inline constexpr char kErrorDomain[] = "attune.dev";

// OK stays OK. The message is made a line (proto/attune/quote.h, ErrorLine). ErrorInfo.reason is the status code's name
// ("NOT_FOUND"), unless the status has a finer one (server/base/reason.h); metadata names the method, and has
// what else the status carries for programs.
grpc::Status ToGrpc(const absl::Status& status, absl::string_view method);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_ERRORS_H_
