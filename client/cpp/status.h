// A server's error as absl::Status: code, one message with the ErrorInfo folded in, and the ErrorInfo itself kept for
// programs.
#ifndef ATTUNE_CLIENT_CPP_STATUS_H_
#define ATTUNE_CLIENT_CPP_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/rpc.pb.h"

namespace grpc {
class Status;
}

namespace attune {

// "<message> [REASON key=value]". When the transport failed rather than the server answering, the message names
// `server`.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view server);

// The google.rpc.ErrorInfo that came with the error; nullopt when there was none.
std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status);

// GetErrorInfo's reason, "PROBLEM_INVALID"; empty when there is none.
std::string ErrorReason(const absl::Status& status);

// Nobody answered: UNAVAILABLE or DEADLINE_EXCEEDED.
bool IsUnreachable(const absl::Status& status);

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_STATUS_H_
