// The thread that keeps a store within its limits, now and then.
#ifndef ATTUNE_SERVER_STORE_RETENTION_KEEPER_H_
#define ATTUNE_SERVER_STORE_RETENTION_KEEPER_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "server/store/store.h"

namespace attune::store {

class RetentionKeeper {
 public:
  // Retains at once and then every `period`, until the end of its life. `store` lives longer. Starts nothing when
  // `limits` limits nothing.
  // `metrics`: null where nobody counts.
  RetentionKeeper(Store* store, Retention limits, absl::Duration period = absl::Minutes(10),
                  metrics::Store* metrics = nullptr);
  ~RetentionKeeper();
  RetentionKeeper(const RetentionKeeper&) = delete;
  RetentionKeeper& operator=(const RetentionKeeper&) = delete;

 private:
  void Run(absl::Duration period);
  void Retain();
  void Count(const absl::StatusOr<Retained>& retained);
  void Report(const Retained& retained);

  Store* const store_;
  metrics::Store* const metrics_;
  Retention limits_;
  bool too_large_ = false;  // at the last look
  std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;  // last: started when all else is there
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_RETENTION_KEEPER_H_
