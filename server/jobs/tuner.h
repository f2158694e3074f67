// Jobs: starting, watching, cancelling and resuming them.
//
// Thread-safe. Jobs run on threads of the tuner's own; on each device one trial at a time, interactive jobs before
// background ones between any two trials.
#ifndef ATTUNE_SERVER_JOBS_TUNER_H_
#define ATTUNE_SERVER_JOBS_TUNER_H_

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/catalog/host.h"
#include "server/jobs/job_kind.h"
#include "server/metrics/jobs.h"
#include "server/store/store.h"
#include "server/supervisor/device_worker.h"

namespace attune::jobs {

struct TunerOptions {
  // All live longer than the tuner.
  store::Store* store = nullptr;
  const catalog::Host* host = nullptr;
  std::map<std::string, supervisor::DeviceWorker*> devices;  // by id
  std::map<store::JobKind, const JobKind*> kinds;
  absl::Duration idle_release = absl::Seconds(60);
  // Who leases jobs of the queue; the next start on the same store must have the same name, and nobody else.
  std::string holder = "attuned";
  absl::Duration lease = store::kDefaultLease;
  bool shared = false;                         // other daemons have the store open, too
  std::function<bool()> takes_work = nullptr;  // of classes, from the queue; null: always
  // Called when the queue says that a job has ended, which another holder had, or this one before: before who asks for
  // that job, or watches it, is told. null: nobody needs to know.
  std::function<void()> ended_elsewhere = nullptr;
  Clock clock = SteadyNow;           // of elapsed times
  metrics::Jobs* metrics = nullptr;  // counts jobs
};

// Whom a job is started for.
struct Asker {
  std::string principal = {};  // empty: the daemon itself
  // ResourceExhausted when the principal has so many jobs queued or running, parts not counted, and none can be joined.
  size_t most_unfinished = std::numeric_limits<size_t>::max();
  absl::Duration most_device_time = absl::InfiniteDuration();  // that its jobs have on cards in a day (UTC)
  std::string trace = {};                                      // id of the trace that the call belongs to; may be empty
};

class Tuner {
 public:
  static absl::StatusOr<std::unique_ptr<Tuner>> Create(TunerOptions options);
  virtual ~Tuner() = default;

  // Starts the unfinished jobs that nobody else holds, and from then on those that others leave. Once, before any other
  // call.
  virtual absl::Status Resume() = 0;

  // Requests are valid and normalised (the service has seen to it). Joins an identical job in flight, or the one that
  // this principal gave the same request_id. One that names a class of device goes to the card of it with the fewest
  // jobs, and from then on is one for that card; where others share the store a tuning, an evaluation or a sweep is for
  // whichever host has such a card free first, and one that names another host's card for that host. FailedPrecondition
  // when nobody has the device or the kind of job refuses the request; Unavailable after Drain.
  virtual absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest& request, const Asker& asker) = 0;
  virtual absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest& request, const Asker& asker) = 0;
  virtual absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest& request, const Asker& asker) = 0;
  virtual absl::StatusOr<v1::Operation> Submit(const v1::SubmitRequest& request, const Asker& asker) = 0;
  virtual absl::StatusOr<v1::Operation> Profile(const v1::ProfileRequest& request, const Asker& asker) = 0;
  virtual absl::StatusOr<v1::Operation> Sanitize(const v1::SanitizeRequest& request, const Asker& asker) = 0;
  // For the daemon itself.
  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest& request) { return Tune(request, {}); }
  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest& request) { return Sweep(request, {}); }
  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest& request) { return Evaluate(request, {}); }

  virtual absl::StatusOr<v1::Operation> GetOperation(absl::string_view name) = 0;
  // Asks it and its parts to stop. An error when the store could not keep that: what runs here stops all the same, and
  // goes on at the next start.
  virtual absl::StatusOr<v1::Operation> Cancel(absl::string_view name) = 0;
  // Whether no job of a device of this host runs or waits in this process.
  virtual bool IsIdle(absl::string_view device_id) = 0;
  // Calls `watcher` with the state now and after each change, at most ten times a second, and finally with the done
  // state; then never again. The returned function unsubscribes; after it returns the watcher is not called.
  // `watcher` must not block.
  using Watcher = std::function<void(const v1::Operation&)>;
  virtual absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watcher watcher) = 0;

  // No new work; jobs stop after the trial they run, for which this waits at most `grace`; unfinished jobs stay
  // resumable. The destructor waits for a trial that is still running, however long it takes.
  virtual void Drain(absl::Duration grace) = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TUNER_H_
