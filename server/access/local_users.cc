#include "server/access/local_users.h"

#include <pwd.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/attune/quote.h"

namespace attune::access {
namespace {

// A number is a uid, whether or not it has a name.
std::optional<uid_t> UidOf(const std::string& user) {
  uint32_t uid = 0;
  if (absl::SimpleAtoi(user, &uid)) return uid;
  std::vector<char> buffer(16384);
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return found->pw_uid;
}

}  // namespace

absl::Status LocalUsers::Assign(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const std::optional<uid_t> uid = UidOf(parts.first);
    if (!uid.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(entry), " names no user of this host; give NAME=ROLE or UID=ROLE"));
    }
    const absl::StatusOr<Role> role = ParseRole(parts.second);
    if (!role.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), " has the role ", role.status().message()));
    }
    if (*uid == 0 || *uid == own_) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(entry), ": root and the daemon's own user are admins, whatever is said"));
    }
    assigned_[*uid] = *role;
  }
  return absl::OkStatus();
}

Principal LocalUsers::Of(uid_t uid) const {
  const auto assigned = assigned_.find(uid);
  const bool owns = uid == 0 || uid == own_;
  return {absl::StrCat("uid:", uid), owns ? Role::kAdmin : assigned != assigned_.end() ? assigned->second : other_};
}

}  // namespace attune::access
