// A job as the trials see it that run for it.
#ifndef ATTUNE_SERVER_TRIALS_JOB_H_
#define ATTUNE_SERVER_TRIALS_JOB_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "server/space/space.h"
#include "server/store/queue.h"
#include "server/trials/device_turn.h"
#include "server/trials/progress.h"
#include "server/trials/waiter.h"

namespace attune::trials {

struct Job {
  std::string name;  // "operations/..."
  Priority priority = Priority::kInteractive;
  std::stop_token stop;        // requested: ends between two trials
  Waiter waiter;               // told whom it waits for
  Progress& progress;          // outlives it
  int64_t epoch = 0;           // of its lease; 0: it has none, and none of its writes is refused
  std::stop_token abort = {};  // requested, after `stop`: what it runs on the device is cut short

  store::Fence fence() const { return epoch > 0 ? store::Fence{name, epoch} : store::Fence(); }
};

// For what asks now and then whether the job was stopped.
inline space::Stopped StoppedWith(const Job& job) {
  return [stop = job.stop] { return stop.stop_requested(); };
}

// Of a compile, for CompilePool::Submit; what a whole job waits for (`awaited`) goes before its variants.
inline int CompilePriority(Priority priority, bool awaited) {
  return -2 * static_cast<int>(priority) + (awaited ? 1 : 0);
}

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_JOB_H_
