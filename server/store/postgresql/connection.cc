#include "server/store/postgresql/connection.h"

#include <poll.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/store/postgresql/errors.h"

namespace attune::store::postgresql {
namespace {

struct OptionsDeleter {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, OptionsDeleter>;

std::string ValueOf(const PQconninfoOption* options, absl::string_view keyword) {
  for (const PQconninfoOption* it = options; it != nullptr && it->keyword != nullptr; ++it) {
    if (it->keyword == keyword) return it->val == nullptr ? "" : it->val;
  }
  return "";
}

std::vector<std::string> SecretsIn(const PQconninfoOption* options) {
  return {ValueOf(options, "password"), ValueOf(options, "sslpassword")};
}

// libpq's words on a string that it cannot parse quote from it, the password perhaps; they are not passed on.
absl::StatusOr<std::vector<std::string>> SecretsOf(const std::string& target) {
  char* message = nullptr;
  const Options options(PQconninfoParse(target.c_str(), &message));
  PQfreemem(message);
  if (options != nullptr) return SecretsIn(options.get());
  return absl::InvalidArgumentError(
      "the connection string is not valid; it must be postgresql://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...] or "
      "KEYWORD=VALUE pairs as libpq takes them (passwords are taken from PGPASSFILE)");
}

std::string Where(PGconn* handle) {
  const auto text = [](const char* value) { return value == nullptr ? "" : value; };
  return absl::StrCat("PostgreSQL at ", text(PQhost(handle)), ":", text(PQport(handle)), ", database ",
                      text(PQdb(handle)));
}

// With what is said elsewhere than in `target`; null when there is no memory for it.
PGconn* BeginConnection(const std::string& target) {
  constexpr std::array<const char*, 4> kKeywords = {"dbname", "fallback_application_name", "client_encoding", nullptr};
  const std::array<const char*, 4> values = {target.c_str(), "attune", "UTF8", nullptr};
  return PQconnectStartParams(kKeywords.data(), values.data(), /*expand_dbname=*/1);
}

// What holds for a session. A commit that was answered must outlive the server's death. A process that is stopped in
// the middle of a transaction must not keep others from its rows for long, nor wait for theirs.
constexpr int kOldestServer = 130000;  // as PQserverVersion gives it
constexpr char kSession[] =
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';"
    "SET idle_in_transaction_session_timeout = '10s';"
    "SET lock_timeout = '10s'";

}  // namespace

bool IsUrl(absl::string_view target) {
  return absl::StartsWith(target, "postgresql://") || absl::StartsWith(target, "postgres://");
}

absl::Status CheckTarget(const std::string& target) { return SecretsOf(target).status(); }

std::string PlaceOf(const std::string& target) {
  PGconn* const handle = BeginConnection(target);
  const Options all(PQconninfo(handle));
  PQfinish(handle);
  std::string place;
  for (const char* const keyword : {"host", "hostaddr", "port", "dbname", "user", "options"}) {
    const std::string value = ValueOf(all.get(), keyword);
    if (!value.empty()) absl::StrAppend(&place, place.empty() ? "" : " ", keyword, "=", value);
  }
  return place;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ConnectionSettings& settings) {
  absl::StatusOr<std::vector<std::string>> secrets = SecretsOf(settings.target);
  if (!secrets.ok()) return secrets.status();
  PGconn* const handle = BeginConnection(settings.target);
  if (handle == nullptr) return absl::ResourceExhaustedError("no memory for a connection to PostgreSQL");
  const Options all(PQconninfo(handle));  // with those of the environment and the service file
  for (std::string& secret : SecretsIn(all.get())) secrets->push_back(std::move(secret));
  if (const char* const from_file = PQpass(handle); from_file != nullptr) secrets->emplace_back(from_file);
  auto connection = std::unique_ptr<Connection>(new Connection(settings, handle, *std::move(secrets)));
  if (absl::Status status = connection->Connect(); !status.ok()) return status;
  if (const int version = PQserverVersion(handle); version < kOldestServer) {
    return absl::FailedPreconditionError(absl::StrCat(connection->where(), " is of version ", version / 10000,
                                                      "; attune needs ", kOldestServer / 10000, " or later"));
  }
  if (absl::Status status = connection->ExecuteScript(kSession); !status.ok()) return status;
  return connection;
}

absl::Status Connection::Connect() {
  const Deadline deadline = After(settings_.connecting);
  where_ = Where(handle_.get());
  // The only way to the SQLSTATE of a connection that is refused.
  PQsetErrorVerbosity(handle_.get(), PQERRORS_VERBOSE);
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (PQstatus(handle_.get()) != CONNECTION_BAD) {
    if (!Await(next == PGRES_POLLING_WRITING, deadline)) {
      return LostConnection(absl::StrCat("no connection within ", absl::FormatDuration(settings_.connecting)), where_);
    }
    next = PQconnectPoll(handle_.get());
    if (next == PGRES_POLLING_FAILED) break;
    if (next != PGRES_POLLING_OK) continue;
    where_ = Where(handle_.get());
    PQsetErrorVerbosity(handle_.get(), PQERRORS_DEFAULT);
    if (PQsetnonblocking(handle_.get(), 1) == 0) return absl::OkStatus();
    break;
  }
  return NoConnection(PQerrorMessage(handle_.get()), PQconnectionNeedsPassword(handle_.get()) != 0, secrets_, where_);
}

bool Connection::Await(bool to_write, const Deadline& deadline) const {
  pollfd wait = {
      .fd = PQsocket(handle_.get()), .events = static_cast<short>(POLLIN | (to_write ? POLLOUT : 0)), .revents = 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, PollTimeout(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

absl::Status Connection::Lost(absl::string_view reason) {
  absl::Status status = LostConnection(WithoutSecrets(reason, secrets_), where_);
  handle_.reset();
  return status;
}

absl::Status Connection::Error(const PGresult* result) const {
  const auto field = [result](int code) {
    const char* value = PQresultErrorField(result, code);
    return absl::string_view(value == nullptr ? "" : value);
  };
  const absl::string_view primary = field(PG_DIAG_MESSAGE_PRIMARY);
  const absl::string_view message = primary.empty() ? PQresultErrorMessage(result) : primary;
  return FromSqlState(field(PG_DIAG_SQLSTATE), WithoutSecrets(message, secrets_), where_);
}

absl::StatusOr<ResultHandle> Connection::Receive() {
  const Deadline deadline = After(settings_.statement);
  ResultHandle last;
  absl::Status error;
  for (;;) {
    const int unsent = PQflush(handle_.get());
    if (unsent < 0) return Lost(PQerrorMessage(handle_.get()));
    if (unsent > 0 || PQisBusy(handle_.get()) != 0) {
      if (!Await(unsent > 0, deadline)) {
        return Lost(absl::StrCat("no answer within ", absl::FormatDuration(settings_.statement)));
      }
      if (PQconsumeInput(handle_.get()) == 0) return Lost(PQerrorMessage(handle_.get()));
      continue;
    }
    ResultHandle result(PQgetResult(handle_.get()));
    if (result == nullptr) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && error.ok()) error = Error(result.get());
    last = std::move(result);
  }
  if (IsLostConnection(error)) handle_.reset();
  if (!error.ok()) return error;
  if (last == nullptr) return Lost("no answer");
  return last;
}

absl::StatusOr<Rows> Connection::Run(const std::string& sql, const Parameters& parameters) {
  if (lost()) return LostConnection("the connection was lost", where_);
  if (!parameters.Send(handle_.get(), sql)) return Lost(PQerrorMessage(handle_.get()));
  absl::StatusOr<ResultHandle> result = Receive();
  if (!result.ok()) return result.status();
  return Rows(*std::move(result));
}

absl::Status Connection::ExecuteScript(const std::string& sql) {
  if (lost()) return LostConnection("the connection was lost", where_);
  if (PQsendQuery(handle_.get(), sql.c_str()) != 1) return Lost(PQerrorMessage(handle_.get()));
  return Receive().status();
}

absl::StatusOr<std::unique_ptr<Transaction>> Transaction::Begin(Connection& connection) {
  if (absl::Status status = connection.Execute("BEGIN ISOLATION LEVEL READ COMMITTED"); !status.ok()) return status;
  return std::unique_ptr<Transaction>(new Transaction(connection));
}

Transaction::~Transaction() {
  if (open_ && !connection_.lost()) connection_.Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  open_ = false;
  const absl::StatusOr<Rows> answer = connection_.Query("COMMIT");
  if (!answer.ok()) return answer.status();
  if (answer->command() == "COMMIT") return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(connection_.where(), ": the transaction was rolled back: a statement failed"));
}

}  // namespace attune::store::postgresql
