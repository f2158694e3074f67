// Sees what other daemons on the same store have promoted, rolled back or unpinned, and has it served here, too. When a
// class of cards is new among the hosts it has all results read again: they may be answers for it.
#ifndef ATTUNE_SERVER_DAEMON_SERVED_WATCH_H_
#define ATTUNE_SERVER_DAEMON_SERVED_WATCH_H_

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include "absl/time/time.h"
#include "server/catalog/fleet.h"
#include "server/catalog/results.h"
#include "server/store/store.h"

namespace attune {

class ServedWatch {
 public:
  // As things were when the results were read, or shortly before.
  struct Since {
    absl::Duration read;  // SteadyNow
    size_t classes = 0;   // of Fleet::Known
  };
  static constexpr absl::Duration kPeriod = absl::Seconds(5);
  // Looks every `period`, until the end of its life, at what has changed `since` then, and calls `changed` after what
  // has. All live longer.
  ServedWatch(store::Store& store, catalog::Results& results, const catalog::Fleet& fleet, Since since,
              absl::Duration period = kPeriod, std::function<void()> changed = nullptr);

  // Looks at once. What was promoted before this call is served here when it returns, unless the store is away.
  void LookNow();

 private:
  using Key = std::tuple<std::string, std::string, int>;  // problem, class, policy

  void Look();
  void LookForClasses();

  store::Store& store_;
  catalog::Results& results_;
  const catalog::Fleet& fleet_;
  const std::function<void()> changed_;
  std::mutex mutex_;  // of one look at a time; guards what follows
  std::map<Key, absl::Time> seen_;
  absl::Duration seen_at_;  // of the last look that succeeded
  bool away_ = false;       // the last look failed
  size_t classes_;          // that the results were read with
  bool unread_ = false;     // the last try to read them again failed
  std::jthread thread_;     // last: started when all else is there
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_SERVED_WATCH_H_
