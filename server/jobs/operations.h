// The operations that this process works on, or may: created in the queue or found there, leased when they begin,
// written to the queue under their lease, ended once.
#ifndef ATTUNE_SERVER_JOBS_OPERATIONS_H_
#define ATTUNE_SERVER_JOBS_OPERATIONS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/boot_clock.h"
#include "server/base/clock.h"
#include "server/jobs/changes.h"
#include "server/jobs/device_times.h"
#include "server/jobs/job_kind.h"
#include "server/jobs/live_operation.h"
#include "server/jobs/watchers.h"
#include "server/metrics/jobs.h"
#include "server/store/queue.h"

namespace attune::jobs {

// Who leases, and for how long at a time.
struct Holder {
  std::string name = "attuned";
  absl::Duration lease = store::kDefaultLease;
  // Where others share the queue: who could renew nothing for so long stops what it has leased, before others take it.
  absl::Duration fence = absl::InfiniteDuration();
  Clock clock = BootNow;  // of that
};

// Thread-safe.
class Operations {
 public:
  static constexpr size_t kMostInFlight = 10'000;  // some 8 KB each

  // `queue` outlives it.
  // `metrics`: null where nobody counts. `ended_elsewhere`: TunerOptions.
  explicit Operations(store::Queue* queue, Holder holder = {}, Clock clock = SteadyNow,
                      metrics::Jobs* metrics = nullptr, std::function<void()> ended_elsewhere = nullptr)
      : queue_(*queue),
        holder_(std::move(holder)),
        clock_(std::move(clock)),
        metrics_(metrics),
        ended_elsewhere_(std::move(ended_elsewhere)) {}

  struct Wanted {
    store::JobKind kind = store::JobKind::kTune;
    std::string request;     // serialised, with its request_id
    std::string request_id;  // the principal's; may be empty
    std::string identity;    // equal for requests that ask for the same
    std::string title;
    std::string problem_text = {};  // empty for a sweep
    // The same on other cards of the class that was asked for: one of these is as good, if there is one already.
    std::vector<store::JoinTerms::Same> elsewhere = {};
    // Of a part: its parent and its name, which is its identity too. It does not count against kMostInFlight.
    std::string parent = {};
    std::string name = {};
    std::string principal = {};  // whose it is; empty: the daemon's own
    size_t most_of_principal = kMostInFlight;
    absl::Duration most_device_time = absl::InfiniteDuration();  // of the principal's, today
    std::string trace = {};                                      // for the log
    // As in store::Job. With `here` false it is left to other hosts.
    std::string device_class = {};
    std::string home = {};
    int64_t priority = 0;
    bool here = true;
    std::string detail = {};  // what it says of itself while it waits
  };
  struct Started {
    std::shared_ptr<LiveOperation> live;  // null when this process has no part in it
    v1::Operation operation;
    std::string request;  // as the queue has it
    bool fresh = false;   // to be run by the caller
  };
  // The operation that the principal gave this request_id, or the identical one that is unfinished, `elsewhere` too, or
  // a new one, which is stored first. AlreadyExists when it gave the request_id to a request for something else,
  // ResourceExhausted when kMostInFlight, parts not counted, are queued or running, or `most_of_principal` of its own,
  // or its operations have had `most_device_time` today (both with the reason QUOTA_EXCEEDED).
  absl::StatusOr<Started> Start(const Wanted& wanted);

  // What principals' operations had of today's device time when an earlier process ended. Before the first Start;
  // another try counts nothing twice.
  absl::Status ReadDeviceTimes(absl::Time now);

  // A job of the queue that this process may lease: of an earlier process, or of another holder. Null when it is in
  // flight already, or has ended meanwhile. `claimed`: it is leased already, under the epoch of `job`.
  std::shared_ptr<LiveOperation> Adopt(const store::Job& job, const std::string& identity, bool claimed = false);

  // Leases what is about to be worked on, unless it is leased already. False when it is not to be had, or `Stop` came
  // first: then it is no longer in flight. A job that somebody has cancelled is asked to stop.
  bool Lease(const std::shared_ptr<LiveOperation>& live);
  // Renews all leases. Who has lost one is told to stop, and so is who was cancelled. Returns what this holder has
  // leased and nobody here works on: an earlier process did, or one that could renew nothing for too long.
  std::vector<std::string> Renew();
  // Whether the last renewal told of all that this holder has leased and does not work on. It did not where it failed,
  // or a job that was lost has yet to stop: that comes back, and wants its place then.
  bool settled() const { return settled_; }
  // No longer this process's: another holder has it, or will. Watchers are told of its progress there by Follow.
  void Drop(const std::shared_ptr<LiveOperation>& live);
  // Looks how those get on that were dropped or are watched, or that wait here for their turn and were leased elsewhere
  // meanwhile.
  void Follow();
  // Stores the progress of what runs here, for who asks another host.
  void KeepProgress();
  // Gives an unfinished job back to the queue for other holders: there it waits, and says why it does.
  void LeaveToOthers(const std::shared_ptr<LiveOperation>& live, absl::string_view why);
  // Gives an unfinished job back to the queue.
  void GiveBack(const std::shared_ptr<LiveOperation>& live);
  // Nothing waits for the store any longer.
  void Stop() { stop_.request_stop(); }

  // As it is here, or as the store has it. One whose end the store refused has ended.
  absl::StatusOr<v1::Operation> Get(absl::string_view name);
  std::shared_ptr<LiveOperation> Find(absl::string_view name);  // null when it is not in flight
  std::vector<std::shared_ptr<LiveOperation>> InFlight();
  std::vector<std::shared_ptr<LiveOperation>> PartsInFlight(absl::string_view parent);
  // Of all parts of a job, or of those that have not ended, as the store has them.
  absl::StatusOr<std::vector<v1::Operation>> PartsOf(const std::string& parent, bool active_only = false);
  // Changes of parts in flight.
  Changes& part_changes() { return part_changes_; }
  absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watchers::Watcher watcher);

  // Stores the state as it is now. Waits while the store is unavailable, until the operation is stopped or Stop.
  absl::Status Save(LiveOperation& live);
  // Ends it, leasing it first if need be: `error`, or OK with the response that `fill` sets; what `fill` returns fails
  // it all the same. The store has it before watchers do; waits while it is unavailable. Drops it when its lease is
  // over.
  void Finish(const std::shared_ptr<LiveOperation>& live, v1::Operation::State state, const absl::Status& error,
              const JobKind::Fill& fill);

 private:
  using Live = std::map<std::string, std::shared_ptr<LiveOperation>, std::less<>>;

  std::shared_ptr<LiveOperation> FindUnkept(absl::string_view name);
  // As the queue has it, for who asks for it or watches it.
  absl::StatusOr<store::Job> GetForTelling(absl::string_view name);
  std::string NewName();
  // What a new job would exceed.
  absl::Status CheckQuotas(const Wanted& wanted);
  // Unfinished ones that are no parts.
  size_t CountOf(absl::string_view principal);
  // Today, parts and what is in flight counted.
  absl::Duration DeviceTimeOf(absl::string_view principal, absl::Time now);
  void CountDeviceTime(const v1::Operation& operation);  // once it has ended
  std::shared_ptr<LiveOperation> InsertLocked(const v1::Operation& operation, store::JobKind kind,
                                              const std::string& trace = "");
  std::shared_ptr<LiveOperation> MakeLive(const v1::Operation& operation, store::JobKind kind,
                                          const std::string& trace);
  // One that is not in flight here, for who watches it: Follow tells of its progress until it has ended.
  std::shared_ptr<LiveOperation> Elsewhere(const store::Job& job);
  // Those that wait here and are another holder's by now.
  void DropTaken();
  absl::Status Store(const std::shared_ptr<LiveOperation>& live, const v1::Operation& last);
  void Count(const LiveOperation& live);  // that it has ended

  store::Queue& queue_;
  const Holder holder_;
  const Clock clock_;
  metrics::Jobs* const metrics_;
  const std::function<void()> ended_elsewhere_;
  std::stop_source stop_;
  Watchers watchers_;
  Changes part_changes_;
  DeviceTimes device_times_;
  std::mutex saving_;                     // held while a state is read and stored: no older one replaces a newer
  std::map<std::string, uint64_t> kept_;  // versions that KeepProgress has stored; of its thread
  std::mutex starting_;                   // held while the queue takes a job: nobody adopts it meanwhile; before mutex_
  uint64_t last_name_ = 0;
  std::atomic<bool> settled_ = false;
  absl::Duration renewed_ = holder_.clock();  // when the last renewal that succeeded was asked for; of Renew's thread
  std::mutex
      mutex_;  // guards what follows; whoever asks for an operation waits for it, and so for no commit of a start
  Live in_flight_;
  Live dropped_;
  Live unkept_;  // ended, and the store did not take it: left to the next process
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_OPERATIONS_H_
