// A few read-only connections, lent one to a reader at a time: bounded, so that memory is.
#ifndef ATTUNE_SERVER_STORE_SQLITE_READERS_H_
#define ATTUNE_SERVER_STORE_SQLITE_READERS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// Thread-safe. Opened after the writer and closed before it.
class Readers {
 public:
  explicit Readers(std::string file) : file_(std::move(file)) {}

  // Runs `read` with a connection of its own, which it must not keep; waits for one when all are lent.
  template <typename Read>
  auto With(Read read) -> decltype(read(std::declval<Connection&>())) {
    absl::StatusOr<Lease> lease = Borrow();
    if (!lease.ok()) return lease.status();
    return read(**lease);
  }

 private:
  struct GiveBack {
    Readers* readers;
    void operator()(Connection* connection) const { readers->Return(connection); }
  };
  using Lease = std::unique_ptr<Connection, GiveBack>;

  absl::StatusOr<Lease> Borrow();
  void Return(Connection* connection);

  const std::string file_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int open_ = 0;
};

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_READERS_H_
