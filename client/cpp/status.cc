#include "client/cpp/status.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attune {
namespace {

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";

// In what gRPC says when TLS fails: of the connection, or of the server's name.
constexpr absl::string_view kHandshake[] = {"handshake", "Verification Check"};
constexpr char kHandshakeAdvice[] =
    "; it must speak TLS with a certificate that tls_ca (or this system) trusts and that has its name (or "
    "tls_server_name), and take the client's certificate, if it asks for one";

// When a server ends the connection without an answer, as it does when it wanted another kind of one.
constexpr char kClosed[] = "Socket closed";
constexpr char kClosedAdvice[] = "; it may want TLS (tls_ca), or the client's certificate (tls_cert)";

// The first ErrorInfo among a google.rpc.Status's details.
std::optional<google::rpc::ErrorInfo> FindErrorInfo(const std::string& details) {
  google::rpc::Status rich;
  if (details.empty() || !rich.ParseFromString(details)) return std::nullopt;
  google::rpc::ErrorInfo info;
  for (const auto& any : rich.details()) {
    if (any.UnpackTo(&info)) return info;
  }
  return std::nullopt;
}

std::string Folded(absl::string_view message, const google::rpc::ErrorInfo& info) {
  std::string text = absl::StrCat(message, " [", info.reason());
  const std::map<std::string, std::string> sorted(info.metadata().begin(), info.metadata().end());
  for (const auto& [key, value] : sorted) {
    if (key != "holds_for") absl::StrAppend(&text, " ", key, "=", value);  // for programs alone
  }
  return absl::StrCat(text, "]");
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status, absl::string_view server) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (const auto info = FindErrorInfo(status.error_details())) {
    absl::Status result(code, Folded(status.error_message(), *info));
    result.SetPayload(kErrorInfoUrl, absl::Cord(info->SerializeAsString()));
    return result;
  }
  switch (code) {
    case absl::StatusCode::kUnavailable:
      if (std::any_of(std::begin(kHandshake), std::end(kHandshake),
                      [&status](absl::string_view said) { return absl::StrContains(status.error_message(), said); })) {
        return {code, absl::StrCat("no TLS connection to ", server, ": ", status.error_message(), kHandshakeAdvice)};
      }
      return {code, absl::StrCat("no server reached at ", server, ": ", status.error_message(),
                                 absl::StrContains(status.error_message(), kClosed) ? kClosedAdvice : "")};
    case absl::StatusCode::kDeadlineExceeded:
      return {code, absl::StrCat("the server at ", server, " did not answer in time: ", status.error_message())};
    default:
      return {code, status.error_message()};
  }
}

std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorInfoUrl);
  google::rpc::ErrorInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return std::nullopt;
  return info;
}

std::string ErrorReason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

bool IsUnreachable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace attune
