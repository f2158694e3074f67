// Every order in which two hosts and a client can use one job of a queue, with a clock that the exploration moves:
// leases, renewals, writes, ends, jobs given back, crashes, cancellations, and writes that a crashed process sent and
// that arrive late. Each answer and the job afterwards must be what a model written apart from lease_rules.h says, and
// no two hosts may at once believe that they hold the job.
#ifndef ATTUNE_SERVER_STORE_TESTING_LEASE_EXPLORER_H_
#define ATTUNE_SERVER_STORE_TESTING_LEASE_EXPLORER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/queue.h"

namespace attune::store {

// A queue in which nobody has used the job `name` yet.
class ExploredQueue {
 public:
  virtual ~ExploredQueue() = default;
  virtual Queue& queue() = 0;
  virtual std::string name() = 0;  // operations/<id>, of a job that is not made yet
  virtual absl::Time now() = 0;    // of the leases
  virtual void Advance(absl::Duration time) = 0;
  // A write for the job, such as a trial. Ok without calling `make` for one that was made before.
  virtual absl::Status Write(const JobWrite& write, absl::FunctionRef<void()> make) = 0;
};

struct ExploreLimits {
  int64_t most_epochs = 3;  // hosts lease the job no more often than so
  size_t most_steps = 100;  // of one order
  bool writes = true;       // ExploredQueue::Write, too
};

struct Exploration {
  size_t states = 0;       // different ones of job, clock and hosts
  size_t transitions = 0;  // steps taken out of them
  bool complete = false;   // no state was left because of most_steps
  std::string violation;   // the first, with the steps that lead to it; empty: none
};

// `fresh` gives the start of each order.
Exploration Explore(const std::function<std::unique_ptr<ExploredQueue>()>& fresh, const ExploreLimits& limits);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_LEASE_EXPLORER_H_
