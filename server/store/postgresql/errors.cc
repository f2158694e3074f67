#include "server/store/postgresql/errors.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::string_view kLost = "attune.store/lost_connection";
constexpr absl::string_view kConflict = "attune.store/conflict";
constexpr absl::string_view kRefused = "attune.store/refused_connection";
constexpr absl::string_view kDoubtful = "attune.store/doubtful_connection";

// What libpq and the system say where nobody answers, or the name is not resolved.
constexpr std::array<absl::string_view, 12> kOutages = {"failed: Connection refused",
                                                        "failed: No such file or directory",  // the socket
                                                        "timeout expired",
                                                        "timed out",
                                                        "could not translate host name",
                                                        "No route to host",
                                                        "Network is unreachable",
                                                        "Host is down",
                                                        "Connection reset by peer",
                                                        "Broken pipe",
                                                        "server closed the connection unexpectedly",
                                                        "SSL SYSCALL error: EOF detected"};

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

// Where the SQLSTATE of the last "FATAL:  28P01: ..." begins; npos where no server has spoken.
size_t FindSqlState(absl::string_view verbose) {
  constexpr absl::string_view kBefore = ":  ";
  constexpr size_t kLength = 5;
  for (size_t at = verbose.rfind(kBefore); at != absl::string_view::npos; at = verbose.rfind(kBefore, at - 1)) {
    const absl::string_view rest = verbose.substr(at + kBefore.size());
    const absl::string_view state = rest.substr(0, kLength);
    const bool is_state = std::all_of(state.begin(), state.end(),
                                      [](char c) { return absl::ascii_isdigit(c) || absl::ascii_isupper(c); });
    if (state.size() == kLength && is_state && absl::StartsWith(rest.substr(kLength), ": ")) {
      return at + kBefore.size();
    }
    if (at == 0) break;
  }
  return absl::string_view::npos;
}

// Role or password, database, rights, options.
bool Refuses(absl::string_view sql_state) {
  const absl::string_view its_class = sql_state.substr(0, 2);
  return its_class == "28" || its_class == "3D" || its_class == "42" || its_class == "22";
}

// Of each server that was tried there is a line: "connection to server at "a", port 5432 failed: ...".
bool SoundsLikeAnOutage(absl::string_view message) {
  bool any = false;
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    const bool known = std::any_of(kOutages.begin(), kOutages.end(),
                                   [line](absl::string_view outage) { return absl::StrContains(line, outage); });
    if (!known && absl::StrContains(line, "failed: ")) return false;
    any = any || known;
  }
  return any;
}

// The server stops, starts or has no room.
bool IsOutageOfServer(absl::string_view sql_state) {
  return absl::StartsWith(sql_state, "57P") || sql_state == "53300";
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

absl::Status NoConnection(absl::string_view verbose, bool needs_password, const std::vector<std::string>& secrets,
                          absl::string_view where) {
  std::string message;
  for (const absl::string_view line : absl::StrSplit(verbose, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "LOCATION:")) continue;  // in the server's sources
    absl::StrAppend(&message, line, "\n");
  }
  std::string sql_state;
  if (const size_t at = FindSqlState(message); at != std::string::npos) {
    sql_state = message.substr(at, 5);
    message.erase(at, 7);
  }
  absl::Status status = LostConnection(WithoutSecrets(message, secrets), where);
  if (needs_password || Refuses(sql_state)) {
    status.SetPayload(kRefused, absl::Cord(sql_state));
  } else if (sql_state.empty() ? !SoundsLikeAnOutage(message) : !IsOutageOfServer(sql_state)) {
    status.SetPayload(kDoubtful, absl::Cord());
  }
  return status;
}

bool IsRefused(const absl::Status& status) { return status.GetPayload(kRefused).has_value(); }

bool IsDoubtful(const absl::Status& status) { return status.GetPayload(kDoubtful).has_value(); }

bool IsConflict(const absl::Status& status) { return status.GetPayload(kConflict).has_value(); }

std::string WithoutSecrets(absl::string_view message, const std::vector<std::string>& secrets) {
  std::string text(absl::StripAsciiWhitespace(message));
  for (const std::string& secret : secrets) {
    if (!secret.empty()) text = absl::StrReplaceAll(text, {{secret, "..."}});
  }
  return absl::StrReplaceAll(text, {{"\n", "; "}, {"\t", " "}});
}

}  // namespace attune::store::postgresql
