// What PostgreSQL's errors mean here. No message has a password in it.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_ERRORS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_ERRORS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attune::store::postgresql {

// ResourceExhausted (disk full), Unavailable (the server stops, starts or has no room, a lock was not to be had in
// time), PermissionDenied, FailedPrecondition (no such database, table or function; a server that takes no writes),
// DataLoss, AlreadyExists (unique constraint), InvalidArgument (a value that cannot be stored), Aborted (another
// transaction was first) or Internal. `where` names server and database.
absl::Status FromSqlState(absl::string_view sql_state, absl::string_view message, absl::string_view where);

// The connection is lost, and whether a statement that was under way was carried out is unknown.
absl::Status LostConnection(absl::string_view reason, absl::string_view where);
bool IsLostConnection(const absl::Status& status);

// Why no connection was made, by libpq's message with PQERRORS_VERBOSE, without `secrets`: a lost connection, and
// IsRefused is true of it when the server answers and lets nobody in as this role, to this database or with these
// options. That is no outage: somebody has to change something. `needs_password`: libpq had none to give.
absl::Status NoConnection(absl::string_view verbose, bool needs_password, const std::vector<std::string>& secrets,
                          absl::string_view where);
bool IsRefused(const absl::Status& status);
// It may pass by itself: nobody answers, or the server starts, stops or has no room.
inline bool IsUnreachable(const absl::Status& status) { return IsLostConnection(status) && !IsRefused(status); }
// Of a NoConnection that is not refused: whether its reason is none that an outage has, such as TLS that fails or a
// certificate that is not there. Most likely somebody has to change something.
bool IsDoubtful(const absl::Status& status);

// Whether the transaction did nothing, and may succeed when it is made again.
bool IsConflict(const absl::Status& status);

// `message` without any of `secrets`, and in one line.
std::string WithoutSecrets(absl::string_view message, const std::vector<std::string>& secrets);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_ERRORS_H_
