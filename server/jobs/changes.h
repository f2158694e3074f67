// That something has changed, told from any thread to whoever waits for it.
#ifndef ATTUNE_SERVER_JOBS_CHANGES_H_
#define ATTUNE_SERVER_JOBS_CHANGES_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "absl/time/time.h"
#include "server/base/deadline.h"

namespace attune::jobs {

// Thread-safe.
class Changes {
 public:
  void Tell() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    told_.notify_all();
  }

  // Blocks while there have been `seen` changes, at most `most`; then gives their number. Returns at once when stopped.
  uint64_t Await(uint64_t seen, const std::stop_token& stop, absl::Duration most) {
    std::unique_lock<std::mutex> lock(mutex_);
    told_.wait_until(lock, stop, After(most), [&] { return count_ != seen; });
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any told_;
  uint64_t count_ = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_CHANGES_H_
