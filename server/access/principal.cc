#include "server/access/principal.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "server/base/reason.h"

namespace attune::access {

absl::Status CheckRole(const Principal& principal, const Method& method) {
  if (principal.role >= method.needs) return absl::OkStatus();
  absl::Status status =
      WithReason(absl::PermissionDeniedError(absl::StrCat(principal.name, " has the role ", RoleName(principal.role),
                                                          "; ", method.name, " needs ", RoleName(method.needs),
                                                          principal.advice.empty() ? "" : "; ", principal.advice)),
                 "ROLE_TOO_LOW");
  status.SetPayload(kPrincipalUrl, absl::Cord(principal.name));
  status.SetPayload(kRoleHeldUrl, absl::Cord(RoleName(principal.role)));
  status.SetPayload(kRoleNeededUrl, absl::Cord(RoleName(method.needs)));
  return status;
}

}  // namespace attune::access
