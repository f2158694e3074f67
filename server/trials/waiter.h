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
  int64_t urgent = 0;       // those of them that have a higher priority
  int64_t overtaken = 0;    // those that have a lower one: a call of theirs is on the device, and ends first
  bool on_device = false;   // the wait is over because the device is its own

  bool operator==(const QueuePlace&) const = default;
};

struct Waiter {
  std::string name;  // "operations/..."
  std::string title;
  // Told of the place in the queue whenever it changes, on any thread. Must not block; may be null.
  std::function<void(const QueuePlace&)> moved = {};
  // Grows from job to job as they begin; of equals that wait for the device, the lower is first.
  uint64_t begun = 0;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_WAITER_H_
