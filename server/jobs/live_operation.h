// An operation while it runs: its state, its progress and the wish to stop it.
#ifndef ATTUNE_SERVER_JOBS_LIVE_OPERATION_H_
#define ATTUNE_SERVER_JOBS_LIVE_OPERATION_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/store/queue.h"
#include "server/trials/progress.h"
#include "server/trials/waiter.h"

namespace attune::jobs {

// Thread-safe.
class LiveOperation : public trials::Progress {
 public:
  // `changed` is called after each change, on the thread that made it; it must not block.
  LiveOperation(v1::Operation operation, std::function<void()> changed, Clock clock = SteadyNow,
                store::JobKind kind = store::JobKind::kTune, std::string trace = "");

  const std::string& name() const { return name_; }
  store::JobKind kind() const { return kind_; }
  // Of the call that started it in this process; empty where that said none.
  const std::string& trace() const { return trace_; }
  const std::string& parent() const { return parent_; }  // empty: it is no part of another

  const std::string& principal() const { return principal_; }  // whose it is; empty: the daemon's own

  // How long it has run on a card, waiting for its turn left out; earlier processes' part of that, too.
  absl::Duration device_time() const;

  // How long it had been here when it first ran; nothing before that.
  std::optional<absl::Duration> waited() const;

  // The state now, elapsed time included. `version` (if not null) grows with every change.
  v1::Operation Snapshot(uint64_t* version = nullptr) const;
  uint64_t version() const;
  bool done() const;

  // Its lease, by this process: 0 before the first.
  void SetEpoch(int64_t epoch);
  int64_t epoch() const;
  store::Fence fence() const { return {name_, epoch()}; }
  // Another holder has the lease: what runs stops, and says nothing more.
  void Lose();
  bool lost() const;
  // Queued again, as `operation`, after it was lost.
  void Reopen(const v1::Operation& operation);

  // RUNNING from now on, on `device` if it takes one; while it waits for its first turn on that it stays QUEUED. Only
  // the first of Begin and Withdraw is true: a job runs, or was cancelled in the queue.
  bool Begin(const std::string& device = "");
  bool Withdraw();
  bool taken() const;
  // Itself in a queue: progress says whom it waits for. Must not outlive the operation.
  trials::Waiter waiter();

  // Changes anything but the name and the title; no effect once it is done.
  void Update(absl::FunctionRef<void(v1::Operation&)> change);

  // Changes its progress.
  void Change(absl::FunctionRef<void(v1::OperationProgress&)> change) override;
  void AddDeviceTime(absl::Duration time) override;

  // Asks to stop between two trials, because the daemon goes down. `cancel`: for good, the running trial cut short.
  void RequestStop(bool cancel);
  bool cancelled() const;
  std::stop_token stop_token() const;
  std::stop_token abort_token() const;  // of what runs, when it is cancelled

 private:
  void SetPlace(const trials::QueuePlace& place);
  void SetStateLocked();  // of one that has begun
  absl::Duration DeviceTimeLocked() const;
  // After what decides whether it runs on a card has changed.
  void CountDeviceTimeLocked();

  const std::string name_;
  const store::JobKind kind_;
  const std::string trace_;
  const std::string parent_;
  const std::string principal_;
  const std::string title_;
  const std::function<void()> changed_;
  const Clock clock_;
  mutable std::mutex mutex_;
  v1::Operation operation_;
  uint64_t version_ = 1;
  bool taken_ = false;  // by Begin or Withdraw
  bool cancelled_ = false;
  bool lost_ = false;
  int64_t epoch_ = 0;
  const absl::Duration came_;                      // by the clock
  std::optional<absl::Duration> waited_;           // before it first ran
  std::optional<absl::Duration> begun_;            // by the clock
  std::string device_;                             // empty before it has begun, or without one
  bool had_turn_ = false;                          // on the device
  absl::Duration device_time_;                     // up to on_device_since_, if that is set
  std::optional<absl::Duration> on_device_since_;  // by the clock
  std::stop_source stop_;
  std::stop_source abort_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_LIVE_OPERATION_H_
