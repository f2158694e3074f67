// A job in a queue, as those behind it see it, and what it is told about those ahead.
#ifndef ATTUNE_SERVER_TRIALS_WAITER_H_
#define ATTUNE_SERVER_TRIALS_WAITER_H_

#include <cstdint>
#include <functional>
#include <string>

namespace attune::trials {

struct QueuePlace {
  std::string first;        // "operations/...", the job that goes first
  std::string first_title;  // of it
  int64_t position = 0;     // how many jobs are ahead, the first included; 0: the wait is over

  bool operator==(const QueuePlace&) const = default;
};

struct Waiter {
  std::string name;  // "operations/..."
  std::string title;
  // Told of the place in the queue whenever it changes, on any thread. Must not block; may be null.
  std::function<void(const QueuePlace&)> moved;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_WAITER_H_
