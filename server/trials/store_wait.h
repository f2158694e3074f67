// Writes of a job: each names the job's lease, and waits while the store is unavailable.
#ifndef ATTUNE_SERVER_TRIALS_STORE_WAIT_H_
#define ATTUNE_SERVER_TRIALS_STORE_WAIT_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/queue.h"
#include "server/trials/job.h"
#include "server/trials/progress.h"

namespace attune::trials {

// Whether a write that failed so may succeed later as it is: it is the store that something is wrong with (store.h).
bool IsOutage(const absl::Status& status);

// One write's waiting. `progress` says meanwhile what is waited for.
class StoreWait {
 public:
  StoreWait(std::string job, std::stop_token stop, Progress& progress);
  ~StoreWait();
  StoreWait(const StoreWait&) = delete;
  StoreWait& operator=(const StoreWait&) = delete;

  // Whether to write again after `failed`; then it has waited a little. No more once `stop` is requested.
  bool Again(const absl::Status& failed);

 private:
  const std::string job_;
  const std::stop_token stop_;
  Progress& progress_;
  absl::Duration pause_ = absl::Milliseconds(20);
  bool waiting_ = false;
  std::string said_;    // in progress, by this one
  std::string before_;  // what progress said then
};

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// What `write` gives, once that is not the store's outage.
template <typename Write>
auto WaitForStore(const std::string& job, std::stop_token stop, Progress& progress, Write write) -> decltype(write()) {
  StoreWait wait(job, std::move(stop), progress);
  while (true) {
    auto result = write();
    if (result.ok() || !wait.Again(StatusOf(result))) return result;
  }
}

// The same with a write for the job, made once however often it is tried.
template <typename Write>
auto WriteFor(const Job& job, Write write) -> decltype(write(store::JobWrite())) {
  const store::JobWrite once = store::NewWrite(job.fence());
  return WaitForStore(job.name, job.stop, job.progress, [&] { return write(once); });
}

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_STORE_WAIT_H_
