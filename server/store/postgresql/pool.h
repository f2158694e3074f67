// A few connections, lent to whoever works with the database for a moment. One that is lost is made anew.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_POOL_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/postgresql/connection.h"

namespace attune::store::postgresql {

// After which it is worth asking again when the database was away.
inline constexpr absl::Duration kRetryDelay = absl::Seconds(5);

struct PoolSettings {
  ConnectionSettings connection;
  size_t most_connections = 4;
  // How long work is tried again for while the server is away, or others get in its way.
  absl::Duration patience = absl::Seconds(8);  // less than a client gives a call
};

// Thread-safe.
class Pool {
 public:
  explicit Pool(PoolSettings settings) : settings_(std::move(settings)) {}

  // From now on no work is done: `why` is its error, at once. Until Open.
  void Close(absl::Status why);
  void Open();
  // Whether the last try to work with the database reached it.
  bool reached() const { return reached_; }

  // Does `work` with a connection. It is done again from its start when another transaction got in its way, and when
  // the connection was lost, after which nobody knows whether a commit happened: so all work is such that to repeat it
  // is harmless. The error of the last try when patience is at its end, with a retry delay (reason.h) when the database
  // is away.
  absl::Status Do(absl::FunctionRef<absl::Status(Connection&)> work);
  // The same in a transaction, which is committed when `work` says OK.
  absl::Status Transact(absl::FunctionRef<absl::Status(Connection&)> work);

  // The same of work that gives something.
  template <typename T>
  absl::StatusOr<T> DoAndReturn(absl::FunctionRef<absl::StatusOr<T>(Connection&)> work) {
    absl::StatusOr<T> result = absl::UnknownError("");
    const absl::Status done = Do([&](Connection& connection) { return (result = work(connection)).status(); });
    if (!done.ok()) return done;
    return result;
  }
  template <typename T>
  absl::StatusOr<T> TransactAndReturn(absl::FunctionRef<absl::StatusOr<T>(Connection&)> work) {
    absl::StatusOr<T> result = absl::UnknownError("");
    const absl::Status done = Transact([&](Connection& connection) { return (result = work(connection)).status(); });
    if (!done.ok()) return done;
    return result;
  }

 private:
  absl::StatusOr<std::unique_ptr<Connection>> Take();
  void PutBack(std::unique_ptr<Connection> connection);
  absl::Status DoOnce(absl::FunctionRef<absl::Status(Connection&)> work);
  void NotReached(const absl::Status& why);

  const PoolSettings settings_;
  std::atomic<bool> reached_ = true;
  std::mutex mutex_;  // guards what follows
  absl::Status closed_;
  std::condition_variable returned_;
  size_t lent_ = 0;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_POOL_H_
