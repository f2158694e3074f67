// What a caller may do. Each role may do what those before it may.
#ifndef ATTUNE_SERVER_ACCESS_ROLE_H_
#define ATTUNE_SERVER_ACCESS_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::access {

// The numbers are compared; they are stored nowhere, names are.
enum class Role {
  kNone = 0,
  kReader,  // looks up, lists, explains, plans
  kTuner,   // starts and cancels work, records baselines, changes what is served
  kAuthor,  // brings kernels of its own
  kAdmin,   // backups and access itself
};

inline constexpr Role kEveryRole[] = {Role::kNone, Role::kReader, Role::kTuner, Role::kAuthor, Role::kAdmin};

// "none", "reader", "tuner", "author" or "admin".
absl::string_view RoleName(Role role);
// InvalidArgument quotes the text and names those there are.
absl::StatusOr<Role> ParseRole(absl::string_view name);

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_ROLE_H_
