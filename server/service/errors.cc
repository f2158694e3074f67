#include "server/service/errors.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"
#include "server/base/reason.h"

namespace attune::service {

grpc::Status ToGrpc(const absl::Status& status, absl::string_view method) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::ErrorInfo info;
  info.set_domain(kErrorDomain);
  const auto reason = status.GetPayload(kReasonUrl);
  info.set_reason(reason ? std::string(*reason) : absl::StatusCodeToString(status.code()));
  (*info.mutable_metadata())["method"] = std::string(method);
  google::rpc::RetryInfo again;
  absl::Duration delay;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (url == kRetryDelayUrl && absl::ParseDuration(std::string(value), &delay)) {
      SetDuration(delay, again.mutable_retry_delay());
      return;
    }
    if (url == kReasonUrl || !absl::ConsumePrefix(&url, kMetadataUrl)) return;
    (*info.mutable_metadata())[std::string(url)] = std::string(value);
  });

  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  const std::string message = ErrorLine(status.message());
  wire.set_message(message);
  wire.add_details()->PackFrom(info);
  if (again.has_retry_delay()) wire.add_details()->PackFrom(again);
  return {static_cast<grpc::StatusCode>(status.code()), message, wire.SerializeAsString()};
}

}  // namespace attune::service
