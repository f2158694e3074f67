// Whom a call is from.
#ifndef ATTUNE_SERVER_ACCESS_PRINCIPAL_H_
#define ATTUNE_SERVER_ACCESS_PRINCIPAL_H_

#include <string>

#include "absl/status/status.h"
#include "server/access/method.h"
#include "server/access/role.h"

namespace attune::access {

struct Principal {
  std::string name;  // "uid:1000", "loopback": the same ever after
  Role role = Role::kNone;
  std::string advice = {};  // how it could have another role, for people; empty: there is none to give
};

// The keys of ErrorInfo.metadata in a refusal, beside kPrincipalUrl.
inline constexpr char kRoleHeldUrl[] = "attune.dev/role";
inline constexpr char kRoleNeededUrl[] = "attune.dev/role_needed";

// OK, or PermissionDenied: it says what the principal is and what the method needs, in words and as payloads.
absl::Status CheckRole(const Principal& principal, const Method& method);

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_PRINCIPAL_H_
