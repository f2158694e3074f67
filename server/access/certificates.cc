#include "server/access/certificates.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/base/reason.h"

namespace attune::access {

absl::Status Certificates::Assign(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(entry), " names no certificate; give NAME=ROLE, the name as its subject's common name"));
    }
    const absl::StatusOr<Role> role = ParseRole(entry.substr(equals + 1));
    if (!role.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), " has the role ", role.status().message()));
    }
    assigned_[entry.substr(0, equals)] = *role;
  }
  return absl::OkStatus();
}

absl::StatusOr<Principal> Certificates::Of(absl::string_view common_name) const {
  if (common_name.empty()) {
    return WithReason(absl::UnauthenticatedError("the client's certificate has no common name in its subject"),
                      "CERTIFICATE_UNNAMED");
  }
  const auto assigned = assigned_.find(common_name);
  return Principal{absl::StrCat("cert:", common_name), assigned != assigned_.end() ? assigned->second : other_,
                   "have --cert_roles of the server give the certificate another role, or bring a token"};
}

}  // namespace attune::access
