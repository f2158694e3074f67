// What a server is told beside its addresses: how many may connect, and whom it takes them to be.
#ifndef ATTUNE_SERVER_SERVICE_SERVER_OPTIONS_H_
#define ATTUNE_SERVER_SERVICE_SERVER_OPTIONS_H_

#include <unistd.h>

#include "server/access/audit_log.h"
#include "server/access/local_users.h"
#include "server/access/role.h"
#include "server/access/tokens.h"
#include "server/service/listener.h"

namespace attune::service {

struct ServerOptions {
  ConnectionLimits limits = LimitsOfThisProcess();
  access::LocalUsers users{geteuid(), access::Role::kTuner};  // over Unix sockets
  access::Role anonymous = access::Role::kReader;             // over TCP
  access::AuditLog* audit = nullptr;                          // lives longer than the server; null: none is kept
  const access::Tokens* tokens = nullptr;                     // live longer than the server; null: none is known
  bool insecure = false;                                      // listens on addresses beyond this host, too
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_SERVER_OPTIONS_H_
