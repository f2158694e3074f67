// Which role a user of this host has over the Unix socket, by the credentials that the kernel gives of the peer.
#ifndef ATTUNE_SERVER_ACCESS_LOCAL_USERS_H_
#define ATTUNE_SERVER_ACCESS_LOCAL_USERS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/principal.h"

namespace attune::access {

class LocalUsers {
 public:
  // Root and `own`, the daemon's user, are admins; `other` is everybody else's role.
  LocalUsers(uid_t own, Role other) : own_(own), other_(other) {}

  // Each entry "NAME=ROLE" or "UID=ROLE". InvalidArgument quotes the one that is wrong: a user that there is not, a
  // role that there is not, or root or the daemon's own user, whose role is not to be chosen.
  absl::Status Assign(const std::vector<std::string>& entries);

  Principal Of(uid_t uid) const;

 private:
  uid_t own_;
  Role other_;
  std::map<uid_t, Role> assigned_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_LOCAL_USERS_H_
