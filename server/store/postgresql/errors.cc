#include "server/store/postgresql/errors.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::string_view kLost = "attune.store/lost_connection";
constexpr absl::string_view kConflict = "attune.store/conflict";

// By SQLSTATE, whole or its class; the first that fits counts.
// https://www.postgresql.org/docs/15/errcodes-appendix.html
constexpr std::array<std::pair<absl::string_view, absl::StatusCode>, 23> kCodes = {{
    {"23505", absl::StatusCode::kAlreadyExists},       // unique_violation
    {"23503", absl::StatusCode::kAborted},             // foreign_key_violation: what is named went meanwhile
    {"25006", absl::StatusCode::kFailedPrecondition},  // read_only_sql_transaction: a standby
    {"28", absl::StatusCode::kPermissionDenied},       // no such role, wrong password
    {"42501", absl::StatusCode::kPermissionDenied},    // insufficient_privilege
    {"3D", absl::StatusCode::kFailedPrecondition},     // no such database
    {"3F", absl::StatusCode::kFailedPrecondition},     // no such schema
    {"42P01", absl::StatusCode::kFailedPrecondition},  // no such table
    {"42703", absl::StatusCode::kFailedPrecondition},  // no such column
    {"42883", absl::StatusCode::kFailedPrecondition},  // no such function
    {"22", absl::StatusCode::kInvalidArgument},        // data exception
    {"54", absl::StatusCode::kInvalidArgument},        // program limit exceeded
    {"40", absl::StatusCode::kAborted},                // serialization failure, deadlock
    {"53300", absl::StatusCode::kUnavailable},         // too many connections
    {"53", absl::StatusCode::kResourceExhausted},      // disk full, out of memory
    {"55P03", absl::StatusCode::kUnavailable},         // lock_not_available
    {"57014", absl::StatusCode::kUnavailable},         // query_canceled
    {"57", absl::StatusCode::kUnavailable},            // the server stops or starts
    {"08", absl::StatusCode::kUnavailable},            // connection exception
    {"25P03", absl::StatusCode::kUnavailable},         // idle_in_transaction_session_timeout
    {"58", absl::StatusCode::kUnavailable},            // I/O error
    {"XX001", absl::StatusCode::kDataLoss},            // data_corrupted
    {"XX002", absl::StatusCode::kDataLoss},            // index_corrupted
}};

absl::StatusCode CodeOf(absl::string_view sql_state) {
  for (const auto& [prefix, code] : kCodes) {
    if (absl::StartsWith(sql_state, prefix)) return code;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status FromSqlState(absl::string_view sql_state, absl::string_view message, absl::string_view where) {
  const bool ends_session = absl::StartsWith(sql_state, "57P") || absl::StartsWith(sql_state, "08") ||
                            sql_state == "25P03" || sql_state.empty();
  if (ends_session) return LostConnection(message, where);
  absl::Status status(CodeOf(sql_state), absl::StrCat(where, ": ", message, " (SQLSTATE ", sql_state, ")"));
  // Two that make the same row: one of them comes second, and then finds it. One that names a row which another
  // removes: it finds it gone.
  for (const absl::string_view conflict : {"40001", "40P01", "23503", "23505"}) {
    if (sql_state == conflict) status.SetPayload(kConflict, absl::Cord());
  }
  return status;
}

absl::Status LostConnection(absl::string_view reason, absl::string_view where) {
  absl::Status status = absl::UnavailableError(absl::StrCat(where, ": ", reason));
  status.SetPayload(kLost, absl::Cord());
  return status;
}

bool IsLostConnection(const absl::Status& status) { return status.GetPayload(kLost).has_value(); }

bool IsConflict(const absl::Status& status) { return status.GetPayload(kConflict).has_value(); }

std::string WithoutSecrets(absl::string_view message, const std::vector<std::string>& secrets) {
  std::string text(absl::StripAsciiWhitespace(message));
  for (const std::string& secret : secrets) {
    if (!secret.empty()) text = absl::StrReplaceAll(text, {{secret, "..."}});
  }
  return absl::StrReplaceAll(text, {{"\n", "; "}, {"\t", " "}});
}

}  // namespace attune::store::postgresql
