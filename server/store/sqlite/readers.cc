#include "server/store/sqlite/readers.h"

#include <utility>

#include "server/store/sqlite/database.h"

namespace attune::store::sqlite {
namespace {

constexpr int kMaxReaders = 4;

}  // namespace

absl::StatusOr<Readers::Lease> Readers::Borrow() {
  std::unique_lock<std::mutex> lock(mutex_);
  returned_.wait(lock, [this] { return !idle_.empty() || open_ < kMaxReaders; });
  if (idle_.empty()) {
    ++open_;
    lock.unlock();
    absl::StatusOr<std::unique_ptr<Connection>> connection = OpenReader(file_);
    if (connection.ok()) return Lease(connection->release(), GiveBack{this});
    lock.lock();
    --open_;
    returned_.notify_one();
    return connection.status();
  }
  Lease lease(idle_.back().release(), GiveBack{this});
  idle_.pop_back();
  return lease;
}

void Readers::Return(Connection* connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.emplace_back(connection);
  returned_.notify_one();
}

}  // namespace attune::store::sqlite
