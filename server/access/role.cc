#include "server/access/role.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"

namespace attune::access {
namespace {

constexpr absl::string_view kRoleNames[] = {"none", "reader", "tuner", "author", "admin"};

}  // namespace

absl::string_view RoleName(Role role) { return kRoleNames[static_cast<int>(role)]; }

absl::StatusOr<Role> ParseRole(absl::string_view name) {
  for (const Role role : kEveryRole) {
    if (name == RoleName(role)) return role;
  }
  return absl::InvalidArgumentError(absl::StrCat(Quoted(name), "; allowed: ", absl::StrJoin(kRoleNames, ", ")));
}

}  // namespace attune::access
