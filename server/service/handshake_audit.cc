#include "server/service/handshake_audit.h"

#include <grpc/support/log.h>

#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/access/method.h"
#include "server/base/log.h"
#include "server/base/reason.h"

namespace attune::service {
namespace {

// gRPC's log function has no argument to know an object by.
std::mutex told_mutex;
access::AuditLog* told = nullptr;

void TellOfHandshake(absl::string_view why) {
  const absl::Status status =
      WithReason(absl::UnauthenticatedError(absl::StrCat("no connection: ", why)), "HANDSHAKE_FAILED");
  const std::lock_guard lock(told_mutex);
  if (told == nullptr) return;
  told->Refused(access::AuditLine(absl::Now(), {.name = "unknown"}, {.name = "TLS"}, "", status));
}

void TakeGrpcLog(gpr_log_func_args* line) {
  const absl::string_view message = line->message;
  if (absl::StartsWith(message, "Handshake failed")) TellOfHandshake(message);
  const LogLevel level = line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo;
  const LogField fields[] = {{"message", message}, {"source", absl::StrCat(line->file, ":", line->line)}};
  Log(level, "gRPC", fields);
}

}  // namespace

HandshakeAudit::HandshakeAudit(access::AuditLog* audit) : audit_(audit) {
  const std::lock_guard lock(told_mutex);
  told = audit_;
  gpr_set_log_function(&TakeGrpcLog);
}

HandshakeAudit::~HandshakeAudit() {
  const std::lock_guard lock(told_mutex);
  if (told == audit_) told = nullptr;
}

}  // namespace attune::service
