// The files that a server's TLS is made of, and what is wrong with them. gRPC reads them, and says nothing but that a
// handshake failed.
#ifndef ATTUNE_SERVER_ACCESS_TLS_FILES_H_
#define ATTUNE_SERVER_ACCESS_TLS_FILES_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace attune::access {

// Of the flags --tls_cert, --tls_key and --tls_client_ca; all PEM.
struct TlsFiles {
  std::string certificate = {};  // the server's, and behind it those up to one that clients know; empty: no TLS
  std::string key = {};          // of the first of them, unencrypted
  std::string client_ca = {};    // who signs clients' certificates; empty: clients have none
};

// Each begins with its flag, without the dashes, and names value and what is allowed; empty when there is none. `now`
// is what certificates must not have expired at.
std::vector<std::string> MistakesIn(const TlsFiles& files, absl::Time now);

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_TLS_FILES_H_
