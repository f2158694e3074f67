// The one thread that writes. Requests that arrive while it commits share the next commit, because what a commit costs
// is its fsync.
//
// Thread-safe. All commits and all checkpoints happen on this thread's connection: SQLite releases of years (3.40.1
// among them) can corrupt the file when one connection checkpoints against another's commit.
#ifndef ATTUNE_SERVER_STORE_SQLITE_WRITER_H_
#define ATTUNE_SERVER_STORE_SQLITE_WRITER_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/metrics/store.h"
#include "server/store/files_in_place.h"
#include "server/store/sqlite/connection.h"
#include "server/store/write_health.h"

namespace attune::store::sqlite {

class Writer {
 public:
  // Runs inside a transaction. An error undoes this request alone. May run a second time, when the transaction that it
  // shared with others could not be committed; it must then forget what the first run gave.
  using Request = std::function<absl::Status(Connection&)>;

  // `metrics`: null where nobody counts; it lives longer.
  explicit Writer(std::unique_ptr<Connection> connection, metrics::Store* metrics = nullptr);
  ~Writer();  // commits what waits, checkpoints and closes
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Returns when the request is committed, or has failed without a trace. FailedPrecondition when the database is not
  // in its place (files_in_place.h); whether what was written just then is there depends on what becomes of the file.
  absl::Status Write(const Request& request);

  template <typename T>
  absl::StatusOr<T> WriteAndReturn(const std::function<absl::StatusOr<T>(Connection&)>& request) {
    std::optional<T> result;
    absl::Status status = Write([&](Connection& connection) {
      absl::StatusOr<T> value = request(connection);
      if (!value.ok()) return value.status();
      result = *std::move(value);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return *std::move(result);
  }

  // Requests that wait for the next commit.
  size_t waiting() const;

  // Told of every commit; of what else the store writes by who writes it.
  WriteHealth& health() { return health_; }

 private:
  struct Waiter {
    const Request* request;
    absl::Status status;
    bool done = false;
  };
  using Group = std::vector<Waiter*>;

  void Loop();
  void Commit(const Group& group);
  void Count(const Group& group, absl::Duration time);
  absl::Status CheckFiles();
  bool CommitTogether(const Group& group);
  absl::Status CommitAlone(const Request& request);

  std::unique_ptr<Connection> connection_;  // the thread's
  FilesInPlace files_;                      // the thread's
  bool in_place_ = true;                    // at the last look
  WriteHealth health_;
  metrics::Store* const metrics_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable committed_;
  Group queue_;
  bool closing_ = false;
  std::thread thread_;  // last: started when all else is there
};

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_WRITER_H_
