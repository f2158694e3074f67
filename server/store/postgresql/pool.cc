#include "server/store/postgresql/pool.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/random/random.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/store/postgresql/errors.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

// Random, so that those who met do not meet again.
void Pause(absl::Duration at_most) {
  absl::BitGen random;
  std::this_thread::sleep_for(absl::ToChronoNanoseconds(at_most * absl::Uniform(random, 0.5, 1.0)));
}

}  // namespace

void Pool::Close(absl::Status why) {
  reached_ = false;
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = std::move(why);
}

void Pool::Open() {
  reached_ = true;
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Connection>> Pool::Take() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!closed_.ok()) return closed_;
    returned_.wait(lock, [this] { return lent_ < settings_.most_connections; });
    ++lent_;
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  absl::StatusOr<std::unique_ptr<Connection>> made = Connection::Open(settings_.connection);
  if (!made.ok()) PutBack(nullptr);
  return made;
}

void Pool::PutBack(std::unique_ptr<Connection> connection) {
  const bool lost = connection != nullptr && connection->lost();
  const bool usable = connection != nullptr && !lost && !connection->InTransaction();
  const std::lock_guard<std::mutex> lock(mutex_);
  --lent_;
  // The server has ended one session, so most likely all; each would fail once.
  if (lost) idle_.clear();
  if (usable) idle_.push_back(std::move(connection));
  returned_.notify_one();
}

absl::Status Pool::DoOnce(absl::FunctionRef<absl::Status(Connection&)> work) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Take();
  if (!connection.ok()) {
    reached_ = false;
    return connection.status();
  }
  absl::Status done = work(**connection);
  reached_ = !IsLostConnection(done);
  PutBack(*std::move(connection));
  return done;
}

absl::Status Pool::Do(absl::FunctionRef<absl::Status(Connection&)> work) {
  const Deadline deadline = After(settings_.patience);
  for (absl::Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    absl::Status done = DoOnce(work);
    const bool lost = IsLostConnection(done);
    if (!lost && !IsConflict(done)) return done;
    if (std::chrono::steady_clock::now() >= deadline) {
      if (lost) SetRetryDelay(kRetryDelay, done);
      return done;
    }
    if (pause == kFirstPause && lost) LogWarning("database away", {{"reason", done.message()}});
    Pause(pause);
  }
}

absl::Status Pool::Transact(absl::FunctionRef<absl::Status(Connection&)> work) {
  return Do([&](Connection& connection) -> absl::Status {
    absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(connection);
    if (!transaction.ok()) return transaction.status();
    if (absl::Status status = work(connection); !status.ok()) return status;
    return (*transaction)->Commit();
  });
}

}  // namespace attune::store::postgresql
