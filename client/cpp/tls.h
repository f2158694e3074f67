// How a client's connection is encrypted. The Python client has the same rules (tests/golden/tls.json).
#ifndef ATTUNE_CLIENT_CPP_TLS_H_
#define ATTUNE_CLIENT_CPP_TLS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attune {

// The files are PEM; they are read when the client is made, and again every 10 s.
struct TlsOptions {
  std::string ca = {};           // who signs servers' certificates; empty: whom this system trusts
  std::string certificate = {};  // the client's own, its chain behind it; empty: it has none
  std::string key = {};          // of that, unencrypted
  std::string server_name = {};  // that the server's certificate must have; empty: the host that is connected to
  // Speaks in clear to another host: whoever is between can read and answer in its place.
  bool insecure = false;

  bool operator==(const TlsOptions&) const = default;
};

// TCP to other hosts is encrypted, and to this one where anything of `options` asks for it; Unix sockets never are.
bool IsEncrypted(absl::string_view server, const TlsOptions& options);

// InvalidArgument names the option, its value and what is allowed.
absl::Status CheckTls(const TlsOptions& options);

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_TLS_H_
