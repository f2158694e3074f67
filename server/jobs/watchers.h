// Tells watchers of operations' changes, from a thread of its own so that no job waits for one, at most ten times a
// second each; the last call has the done state.
#ifndef ATTUNE_SERVER_JOBS_WATCHERS_H_
#define ATTUNE_SERVER_JOBS_WATCHERS_H_

#include <functional>
#include <memory>
#include <thread>

#include "attune/v1/service.pb.h"
#include "server/jobs/live_operation.h"

namespace attune::jobs {

// Thread-safe.
class Watchers {
 public:
  using Watcher = std::function<void(const v1::Operation&)>;

  Watchers();
  ~Watchers();  // No watcher is called afterwards.

  // The returned function unsubscribes; after it returns the watcher is not called. It may be called from the watcher
  // itself, more than once, and after the Watchers are gone.
  std::function<void()> Add(std::shared_ptr<const LiveOperation> operation, Watcher watcher);

  // Some operation has changed. Does not block.
  void Changed();

 private:
  struct State;

  static void Run(State& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_WATCHERS_H_
