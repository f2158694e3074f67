// A few threads for calls that may wait for the disk: gRPC's own threads must not.
#ifndef ATTUNE_SERVER_SERVICE_EXECUTOR_H_
#define ATTUNE_SERVER_SERVICE_EXECUTOR_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

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

  std::mutex mutex_;  // guards what follows up to the blank line
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<std::function<void()>> queue_;

  std::vector<std::thread> threads_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_EXECUTOR_H_
