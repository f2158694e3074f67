// Sees what other daemons on the same store have promoted, rolled back or unpinned, and has it served here, too.
#ifndef ATTUNE_SERVER_DAEMON_SERVED_WATCH_H_
#define ATTUNE_SERVER_DAEMON_SERVED_WATCH_H_

#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "absl/time/time.h"
#include "server/catalog/results.h"
#include "server/store/store.h"

namespace attune {

class ServedWatch {
 public:
  // Looks every `period`, until the end of its life, at what has changed since `read`, when the results were
  // (SteadyNow). Store and results live longer.
  ServedWatch(store::Store& store, catalog::Results& results, absl::Duration read,
              absl::Duration period = absl::Seconds(5));

 private:
  using Key = std::tuple<std::string, std::string, int>;  // problem, class, policy

  void Look();

  store::Store& store_;
  catalog::Results& results_;
  std::map<Key, absl::Time> seen_;
  absl::Duration seen_at_;  // of the last look that succeeded
  bool away_ = false;       // the last look failed
  std::jthread thread_;     // last: started when all else is there
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_SERVED_WATCH_H_
