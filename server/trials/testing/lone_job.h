// A job for tests of what works for one: its stop, and what its progress says.
#ifndef ATTUNE_SERVER_TRIALS_TESTING_LONE_JOB_H_
#define ATTUNE_SERVER_TRIALS_TESTING_LONE_JOB_H_

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include "server/trials/job.h"

namespace attune::trials {

class LoneJob final : public Progress {
 public:
  void Change(absl::FunctionRef<void(v1::OperationProgress&)> change) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(progress_);
    changed_.notify_all();
  }
  // Blocks until the progress's message is this.
  void AwaitMessage(const std::string& message) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return progress_.message() == message; });
  }

  std::stop_source stop;
  Job job = {"operations/1", Priority::kInteractive, stop.get_token(), {}, *this};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  v1::OperationProgress progress_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TESTING_LONE_JOB_H_
