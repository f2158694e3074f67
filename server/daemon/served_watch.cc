#include "server/daemon/served_watch.h"

#include <stop_token>
#include <utility>
#include <vector>

#include "server/base/pause.h"

namespace attune {

ServedWatch::ServedWatch(store::Store& store, catalog::Results& results, absl::Duration period)
    : store_(store), results_(results), thread_([this, period](const std::stop_token& stop) {
        do {
          Look();
        } while (Pause(stop, period));
      }) {}

// The same change is told for a while: each is passed on once. While the store is away, what is in memory stays.
void ServedWatch::Look() {
  const absl::StatusOr<std::vector<store::ServedChange>> changes = store_.ChangesOfServed();
  if (!changes.ok()) return;
  std::map<Key, absl::Time> seen;
  for (const store::ServedChange& change : *changes) {
    Key key = {change.problem_text, change.device_class, change.policy};
    const auto before = seen_.find(key);
    if (before == seen_.end() || before->second != change.time) {
      results_.Reread({change.problem_text, change.device_class, change.policy});
    }
    seen.emplace(std::move(key), change.time);
  }
  seen_ = std::move(seen);
}

}  // namespace attune
