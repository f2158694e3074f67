#include "server/service/errors.h"

#include <optional>
#include <string>

#include "proto/attune/quote.h"
#include "server/base/reason.h"

namespace attune::service {
grpc::Status ToGrpc(const absl::Status& status, absl::string_view method) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::ErrorInfo info;
  info.set_domain(kErrorDomain);
  const auto reason = status.GetPayload(kReasonUrl);
  info.set_reason(reason ? std::string(*reason) : absl::StatusCodeToString(status.code()));
  (*info.mutable_metadata())["method"] = std::string(method);
  if (const auto holds_for = status.GetPayload(kHoldsForUrl)) {
    (*info.mutable_metadata())["holds_for"] = std::string(*holds_for);
  }

  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  const std::string message = ErrorLine(status.message());
  wire.set_message(message);
  wire.add_details()->PackFrom(info);
  return {static_cast<grpc::StatusCode>(status.code()), message, wire.SerializeAsString()};
}

}  // namespace attune::service
