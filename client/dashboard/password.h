// HTTP Basic authentication (RFC 7617) with one password; who uses it may give any name.
#ifndef ATTUNE_CLIENT_DASHBOARD_PASSWORD_H_
#define ATTUNE_CLIENT_DASHBOARD_PASSWORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/dashboard/http_message.h"

namespace attune::dashboard {

// Thread-safe.
class Password {
 public:
  // The one line of `path`. InvalidArgument names --password-file and what is allowed: at least 12 characters, in a
  // file of mode 0600 or 0640.
  static absl::StatusOr<Password> Read(const std::string& path);

  // Whether the request brings it. Takes as long for one wrong password as for another.
  bool Matches(const HttpRequest& request) const;
  // 401, which has a browser ask its user.
  static HttpResponse Ask();

 private:
  explicit Password(const std::string& text);

  std::vector<uint8_t> hash_;  // SHA-256
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_PASSWORD_H_
