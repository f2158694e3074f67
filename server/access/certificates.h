// Which role a client has by its certificate, whose authority TLS has verified.
#ifndef ATTUNE_SERVER_ACCESS_CERTIFICATES_H_
#define ATTUNE_SERVER_ACCESS_CERTIFICATES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/access/principal.h"

namespace attune::access {

class Certificates {
 public:
  // `other` is the role of a certificate that has none assigned.
  explicit Certificates(Role other) : other_(other) {}

  // Each entry "NAME=ROLE", with the common name of a certificate's subject. InvalidArgument quotes the one that is
  // wrong.
  absl::Status Assign(const std::vector<std::string>& entries);

  // "cert:NAME". Unauthenticated without a common name: then it is nobody's.
  absl::StatusOr<Principal> Of(absl::string_view common_name) const;

 private:
  Role other_;
  std::map<std::string, Role, std::less<>> assigned_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_CERTIFICATES_H_
