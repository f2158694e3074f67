// Reads and writes of a job, which wait while the store is unavailable. Each write names the job's lease.
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

// Whether a read that failed so may succeed later: anything else may be what the read has found.
bool IsReadOutage(const absl::Status& status);

// One call's waiting. `progress` says meanwhile what is waited for.
class StoreWait {
 public:
  using Outage = bool (*)(const absl::Status&);
  StoreWait(std::string job, std::stop_token stop, Progress& progress, Outage outage = IsOutage);
  ~StoreWait();
  StoreWait(const StoreWait&) = delete;
  StoreWait& operator=(const StoreWait&) = delete;

  // Whether to try again after `failed`; then it has waited a little. No more once `stop` is requested.
  bool Again(const absl::Status& failed);

 private:
  const std::string job_;
  const std::stop_token stop_;
  Progress& progress_;
  const Outage outage_;
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

// What `read` gives, once that is not the store's outage.
template <typename Read>
auto ReadFor(const Job& job, Read read) -> decltype(read()) {
  StoreWait wait(job.name, job.stop, job.progress, IsReadOutage);
  while (true) {
    auto result = read();
    if (result.ok() || !wait.Again(StatusOf(result))) return result;
  }
}

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_STORE_WAIT_H_
