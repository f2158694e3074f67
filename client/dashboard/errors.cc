#include "client/dashboard/errors.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cpp/status.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {
namespace {

HttpResponse Response(int status, const nlohmann::json& error) {
  const nlohmann::json body = {{"error", error}};
  return {.status = status,
          .content = MakeContent(kJson, body.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace))};
}

}  // namespace

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnknown:
    default:
      return 500;
  }
}

HttpResponse ErrorResponse(int status, absl::string_view code, absl::string_view message) {
  return Response(status, {{"code", code}, {"message", ErrorLine(message)}});
}

HttpResponse ErrorResponse(const absl::Status& error) {
  nlohmann::json json = {{"code", absl::StatusCodeToString(error.code())}, {"message", ErrorLine(error.message())}};
  if (const std::string reason = ErrorReason(error); !reason.empty()) json["reason"] = reason;
  return Response(HttpStatusOf(error.code()), json);
}

HttpResponse ErrorResponse(const FieldError& error) {
  // Only a message has its length bounded; what is allowed may be a long list.
  return Response(400, {{"code", "INVALID_ARGUMENT"},
                        {"message", absl::StrCat(ErrorLine(error.field, kMostQuoted), " is ", Quoted(error.value),
                                                 "; allowed: ", error.allowed)},
                        {"field", ErrorLine(error.field, kMostQuoted)},
                        {"value", ErrorLine(error.value, kMostQuoted)},
                        {"allowed", error.allowed}});
}

}  // namespace attune::dashboard
