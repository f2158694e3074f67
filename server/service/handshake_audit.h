// Tells the audit log of connections that TLS refused: a certificate that has expired, one of another authority, none.
//
// gRPC ends such a connection before there is a call. All it has for others is a line of its log, which has OpenSSL's
// reason and not the peer.
#ifndef ATTUNE_SERVER_SERVICE_HANDSHAKE_AUDIT_H_
#define ATTUNE_SERVER_SERVICE_HANDSHAKE_AUDIT_H_

#include "server/access/audit_log.h"

namespace attune::service {

// From the first one on gRPC's log is the daemon's. One of several tells its log: the newest.
class HandshakeAudit {
 public:
  // `audit` lives longer; null: none is kept.
  explicit HandshakeAudit(access::AuditLog* audit);
  ~HandshakeAudit();
  HandshakeAudit(const HandshakeAudit&) = delete;
  HandshakeAudit& operator=(const HandshakeAudit&) = delete;

 private:
  access::AuditLog* const audit_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_HANDSHAKE_AUDIT_H_
