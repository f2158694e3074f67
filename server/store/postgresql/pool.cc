#include "server/store/postgresql/pool.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
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

// What a caller is told, who may not know what `status` names. Refused is whoever asks with a wrong password: no
// outage.
absl::Status Away(const absl::Status& status) {
  if (IsRefused(status)) return status;
  absl::Status away(status.code(), absl::StrCat("the database is away: ", status.message()));
  status.ForEachPayload([&away](absl::string_view url, const absl::Cord& payload) { away.SetPayload(url, payload); });
  return away;
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
    NotReached(connection.status());
    return connection.status();
  }
  absl::Status done = work(**connection);
  PutBack(*std::move(connection));
  if (IsLostConnection(done)) {
    NotReached(done);
  } else if (!reached_.exchange(true)) {
    LogInfo("database back");
  }
  return done;
}

void Pool::NotReached(const absl::Status& why) {
  // Once for an outage, however many wait for its end. Of a pool that is closed its owner has told.
  if (reached_.exchange(false) && IsLostConnection(why)) LogWarning("database away", {{"reason", why.message()}});
}

absl::Status Pool::Do(absl::FunctionRef<absl::Status(Connection&)> work) {
  const Deadline deadline = After(settings_.patience);
  for (absl::Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    absl::Status done = DoOnce(work);
    const bool lost = IsLostConnection(done);
    if (!lost && !IsConflict(done)) return done;
    if (std::chrono::steady_clock::now() >= deadline) {
      if (!lost) return done;
      done = Away(done);
      SetRetryDelay(kRetryDelay, done);
      return done;
    }
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
