// A few threads for calls that may wait for the disk: gRPC's own threads must not.
#ifndef ATTUNE_SERVER_SERVICE_EXECUTOR_H_
#define ATTUNE_SERVER_SERVICE_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attune::service {

// Thread-safe. The destructor runs what is queued, then joins.
class Executor {
 public:
  explicit Executor(int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void Run(std::function<void()> work);

 private:
  void Loop();

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_EXECUTOR_H_
