// What a server is told beside its addresses: how many may connect, and whom it takes them to be.
#ifndef ATTUNE_SERVER_SERVICE_SERVER_OPTIONS_H_
#define ATTUNE_SERVER_SERVICE_SERVER_OPTIONS_H_

#include <unistd.h>

#include <optional>

#include "server/access/audit_log.h"
#include "server/access/certificates.h"
#include "server/access/local_users.h"
#include "server/access/quotas.h"
#include "server/access/role.h"
#include "server/access/tls_files.h"
#include "server/access/tokens.h"
#include "server/metrics/calls.h"
#include "server/service/listener.h"

namespace attune::service {

// How every TCP address is encrypted. The files have no mistake (access::MistakesIn).
struct TlsOptions {
  access::TlsFiles files = {};
  access::Certificates clients{access::Role::kReader};  // where the files name who signs them
  int reload_seconds = 10;                              // after this long, new contents of the files are used
};

struct ServerOptions {
  ConnectionLimits limits = LimitsOfThisProcess();
  access::LocalUsers users{geteuid(), access::Role::kTuner};  // over Unix sockets
  access::Role anonymous = access::Role::kReader;             // over TCP
  access::QuotaLimits quotas = {};                            // of those from elsewhere, and of tokens
  access::AuditLog* audit = nullptr;                          // lives longer than the server; null: none is kept
  const access::Tokens* tokens = nullptr;                     // live longer than the server; null: none is known
  std::optional<TlsOptions> tls = {};                         // nothing: TCP is in clear
  metrics::Calls* calls = nullptr;  // counts them; lives longer than the server; null: nobody does
  bool insecure = false;            // listens on addresses beyond this host although TCP is in clear
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_SERVER_OPTIONS_H_
