// A connection to PostgreSQL: libpq's asynchronous calls, each with a deadline.
//
// Where the server is, and as whom to go there, is said by a connection string, and by libpq's own places for all that
// it leaves out: the environment (PGHOST, PGUSER and so on), a service file, and for passwords PGPASSFILE or ~/.pgpass.
// A password belongs there and not into the string, which others may see.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_CONNECTION_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_CONNECTION_H_

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/deadline.h"
#include "server/store/postgresql/values.h"

namespace attune::store::postgresql {

struct ConnectionSettings {
  std::string target;                            // postgresql://[user@]host[:port]/database, or "host=... dbname=..."
  absl::Duration connecting = absl::Seconds(5);  // the longest; looking up the host's name comes on top
  absl::Duration statement = absl::Seconds(30);  // the longest that one may take
};

// Begins with postgresql:// or postgres://: the connection strings that flags take.
bool IsUrl(absl::string_view target);

// InvalidArgument when it is no connection string.
absl::Status CheckTarget(const std::string& target);

// Which database that is, whichever way it is said: host, port, database, role and options, without a password. For a
// connection string that CheckTarget likes.
std::string PlaceOf(const std::string& target);

// One thread at a time.
class Connection {
 public:
  // InvalidArgument when the connection string is none; FailedPrecondition when the server is too old; Unavailable, and
  // IsLostConnection is true of it, when nobody answers in time; otherwise as FromSqlState.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ConnectionSettings& settings);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // One statement, its parameters $1, $2 and so on. An error of a statement ends the transaction, not the connection;
  // IsLostConnection is true of the errors that do, this one and all that follow.
  template <typename... Values>
  absl::StatusOr<Rows> Query(const std::string& sql, const Values&... values) {
    Parameters parameters;
    (parameters.Add(values), ...);
    return Run(sql, parameters);
  }
  absl::StatusOr<Rows> Query(const std::string& sql, const Parameters& parameters) { return Run(sql, parameters); }
  // Of which only the success counts.
  template <typename... Values>
  absl::Status Execute(const std::string& sql, const Values&... values) {
    return Query(sql, values...).status();
  }
  // Statements without parameters, separated by semicolons: one transaction unless they say otherwise.
  absl::Status ExecuteScript(const std::string& sql);

  bool lost() const { return PQstatus(handle_.get()) != CONNECTION_OK; }
  bool InTransaction() const { return PQtransactionStatus(handle_.get()) != PQTRANS_IDLE; }
  // For messages: server and database.
  const std::string& where() const { return where_; }

 private:
  struct Closer {
    void operator()(PGconn* handle) const { PQfinish(handle); }
  };

  Connection(ConnectionSettings settings, PGconn* handle, std::vector<std::string> secrets)
      : settings_(std::move(settings)), secrets_(std::move(secrets)), handle_(handle) {}

  absl::Status Connect();
  absl::Status Prepare();
  absl::StatusOr<Rows> Run(const std::string& sql, const Parameters& parameters);
  // The last result of what was sent, when all have come; the first error.
  absl::StatusOr<ResultHandle> Receive();
  // Waits for libpq's socket. False at the deadline.
  bool Await(bool to_write, const Deadline& deadline) const;
  absl::Status Lost(absl::string_view reason);
  absl::Status Error(const PGresult* result) const;

  const ConnectionSettings settings_;
  const std::vector<std::string> secrets_;
  std::unique_ptr<PGconn, Closer> handle_;
  std::string where_;
};

// Rolls back at the end of its life unless committed.
class Transaction {
 public:
  static absl::StatusOr<std::unique_ptr<Transaction>> Begin(Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // When the connection is lost meanwhile, it may be committed or not.
  absl::Status Commit();

 private:
  explicit Transaction(Connection& connection) : connection_(connection) {}

  Connection& connection_;
  bool open_ = true;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_CONNECTION_H_
