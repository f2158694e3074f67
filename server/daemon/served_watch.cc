#include "server/daemon/served_watch.h"

#include <stop_token>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/pause.h"

namespace attune {

ServedWatch::ServedWatch(store::Store& store, catalog::Results& results, const catalog::Fleet& fleet, Since since,
                         absl::Duration period, std::function<void()> changed)
    : store_(store),
      results_(results),
      fleet_(fleet),
      changed_(std::move(changed)),
      seen_at_(since.read),
      classes_(since.classes),
      thread_([this, period](const std::stop_token& stop) {
        do {
          LookNow();
        } while (Pause(stop, period));
      }) {}

void ServedWatch::LookNow() {
  const std::lock_guard<std::mutex> one(mutex_);
  LookForClasses();
  Look();
}

// Until it succeeds.
void ServedWatch::LookForClasses() {
  const size_t classes = fleet_.Known().size();
  if (classes == classes_) return;
  const absl::Status read = results_.Reload();
  if (read.ok()) classes_ = classes;
  if (read.ok() && changed_) changed_();
  if (!read.ok() && !unread_) {
    LogWarning("answers for a new class of cards are not made yet", {{"error", read.message()}});
  }
  unread_ = !read.ok();
}

// The same change is told for a while: each is passed on once. While the store is away, what is in memory stays, and
// the first look after that reaches back to the last before.
void ServedWatch::Look() {
  const absl::Duration now = SteadyNow();
  const absl::StatusOr<std::vector<store::ServedChange>> changes =
      store_.ChangesOfServed(now - seen_at_ + store::Store::kLatestCommit);
  if (!changes.ok()) {
    if (!std::exchange(away_, true)) {
      LogWarning("what other daemons serve cannot be read", {{"error", changes.status().message()}});
    }
    return;
  }
  away_ = false;
  seen_at_ = now;
  std::vector<catalog::ResultKey> fresh;
  std::map<Key, absl::Time> seen;
  for (const store::ServedChange& change : *changes) {
    Key key = {change.problem_text, change.device_class, change.policy};
    const auto before = seen_.find(key);
    if (before == seen_.end() || before->second != change.time) {
      fresh.push_back({change.problem_text, change.device_class, change.policy});
    }
    seen.emplace(std::move(key), change.time);
  }
  seen_ = std::move(seen);
  if (fresh.empty()) return;
  results_.Reread(fresh);
  if (changed_) changed_();
}

}  // namespace attune
