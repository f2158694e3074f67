#include "server/store/sqlite/writer.h"

#include <algorithm>
#include <utility>

#include "server/base/clock.h"
#include "server/base/log.h"

namespace attune::store::sqlite {

Writer::Writer(std::unique_ptr<Connection> connection, metrics::Store* metrics)
    : connection_(std::move(connection)), files_(connection_->file()), metrics_(metrics), thread_([this] { Loop(); }) {
  if (metrics_ == nullptr) return;
  metrics_->writer().Set([this] { return metrics::WriterState{waiting(), !health_.broken()}; });
}

Writer::~Writer() {
  if (metrics_ != nullptr) metrics_->writer().Clear();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

absl::Status Writer::Write(const Request& request) {
  Waiter waiter{&request, absl::OkStatus()};
  std::unique_lock<std::mutex> lock(mutex_);
  queue_.push_back(&waiter);
  arrived_.notify_one();
  committed_.wait(lock, [&waiter] { return waiter.done; });
  return waiter.status;
}

size_t Writer::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.size();
}

void Writer::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) break;
    const Group group = std::exchange(queue_, {});
    lock.unlock();
    const absl::Duration begun = SteadyNow();
    Commit(group);
    if (metrics_ != nullptr) Count(group, SteadyNow() - begun);
    for (const Waiter* waiter : group) health_.Note(waiter->status);
    lock.lock();
    for (Waiter* waiter : group) waiter->done = true;
    committed_.notify_all();
  }
  connection_.reset();  // the last connection to close checkpoints: here, on this thread
}

void Writer::Commit(const Group& group) {
  absl::Status in_place = CheckFiles();
  if (in_place.ok()) {
    if (!CommitTogether(group)) {
      for (Waiter* waiter : group) waiter->status = CommitAlone(*waiter->request);
    }
    in_place = CheckFiles();
  }
  if (in_place.ok()) return;
  for (Waiter* waiter : group) waiter->status = in_place;
}

void Writer::Count(const Group& group, absl::Duration time) {
  const auto failed = std::count_if(group.begin(), group.end(),
                                    [](const Waiter* waiter) { return WriteHealth::IsTrouble(waiter->status); });
  metrics_->Committed(group.size(), static_cast<size_t>(failed), time);
}

absl::Status Writer::CheckFiles() {
  absl::Status status = files_.Check();
  if (status.ok() && !in_place_) LogInfo("the database is in its place again", {{"file", connection_->file()}});
  if (!status.ok() && in_place_) LogError("the database is not in its place", {{"reason", status.message()}});
  in_place_ = status.ok();
  return status;
}

// False when nothing was committed, and the requests' own statuses mean nothing.
bool Writer::CommitTogether(const Group& group) {
  absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
  if (!transaction.ok()) {
    // No request's fault, and SQLite has waited for a lock long enough: alone, each would wait as long again.
    for (Waiter* waiter : group) waiter->status = transaction.status();
    return true;
  }
  for (Waiter* waiter : group) {
    if (!connection_->Execute("SAVEPOINT request").ok()) return false;
    waiter->status = (*waiter->request)(*connection_);
    // A full disk may have rolled back everybody's work.
    if (!connection_->InTransaction()) return false;
    if (!waiter->status.ok() && !connection_->Execute("ROLLBACK TO request").ok()) return false;
    if (!connection_->Execute("RELEASE request").ok()) return false;
  }
  return (*transaction)->Commit().ok();
}

absl::Status Writer::CommitAlone(const Request& request) {
  absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
  if (!transaction.ok()) return transaction.status();
  if (absl::Status status = request(*connection_); !status.ok()) return status;
  return (*transaction)->Commit();
}

}  // namespace attune::store::sqlite
