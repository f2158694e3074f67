// Jobs, and the right to work on them: created once, leased by one holder at a time, ended once.
//
// A holder is whoever works on jobs: a daemon, by a name that its next start has again. Each lease of a job has a
// greater epoch than the one before. The holder's later writes, its trials and promotions among them (store.h), name
// the epoch, and are refused once the job was leased again, given back or ended: Aborted, and IsStale is true of the
// error. A lease that has run out may be taken by anybody; until somebody does, its holder's writes still count.
//
// Each write may be repeated when its answer was lost: that is harmless, and answers as the first did.
//
// Thread-safe. Errors and pages are those of store.h; NotFound when there is no such job.
#ifndef ATTUNE_SERVER_STORE_QUEUE_H_
#define ATTUNE_SERVER_STORE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/store/page.h"

namespace attune::store {

// Persisted.
enum class JobKind {
  kTune = 1,
  kSweep = 2,
  kEvaluate = 3,
  kSweepProblem = 4,
  kSubmit = 5,
  kProfile = 6,
  kSanitize = 7
};

// A job as it must survive a kill: its request and its state. `operation` is what clients see.
struct Job {
  std::string name;  // "operations/<id>"
  JobKind kind = JobKind::kTune;
  std::string request;      // serialised v1::TuneRequest, SweepRequest (of one problem also), EvaluateVariantRequest,
                            // SubmitRequest, ProfileRequest or SanitizeRequest
  std::string request_id;   // empty, or unique
  std::string identity;     // equal for requests that ask for the same; empty for a job of before schema version 5
  std::string parent = {};  // name of the job that this is a part of; empty: of none
  v1::Operation operation;
  // Of its last lease. A job that was never leased, or was given back, has no holder.
  std::string holder;
  int64_t epoch = 0;
  absl::Time leased_until = absl::InfinitePast();
  bool cancelled = false;  // somebody has asked to end it
  // Who may work on it. Of a class (v1::Device.fingerprint), whoever has cards of that and claims it; `home`, where it
  // is set, is the host whose cards the request names: it alone, unless there is a class, may lease it. Neither: the
  // host that made it. Where one process alone has the store, all are its own.
  std::string device_class = {};
  std::string home = {};
  int64_t priority = 0;                   // of a class's jobs those with less are claimed first
  std::vector<std::string> lost_by = {};  // holders from whom a claim took it because their lease had run out
};

// A job that somebody has leased.
struct LeasedJob {
  std::string name;
  std::string holder;
  int64_t epoch = 0;
  bool cancelled = false;
};

// Where a holder can begin a job: one of this class and priority.
struct Room {
  std::string device_class;
  int64_t priority = 0;
};

// How long a holder leases a job for, unless it is told otherwise.
inline constexpr absl::Duration kDefaultLease = absl::Seconds(60);
// From so many holders a job may be lost; then it is taken to be what loses them.
inline constexpr size_t kMostLosses = 3;

// The right to write for a job.
struct Fence {
  std::string job;  // its name; empty: for no job, which is never refused
  int64_t epoch = 0;
};

// One write for a job. `id` is the write's own among those of the job's lease.
struct JobWrite {
  Fence fence;
  int64_t id = 0;
};

// A write that no other has the id of.
JobWrite NewWrite(const Fence& fence);

// Whether a write was refused because the job is no longer its holder's.
bool IsStale(const absl::Status& status);
absl::Status StaleError(const Fence& fence, const Job& now);

// What a new job may join instead of being made.
struct JoinTerms {
  // The same work, asked for in other words.
  struct Same {
    std::string request;
    std::string identity;
  };
  std::vector<Same> others = {};
  // ResourceExhausted when so many jobs that are no parts are unfinished and none can be joined.
  size_t most_unfinished = std::numeric_limits<size_t>::max();
};

struct JobFilter {
  bool active_only = false;
  std::string problem_text = {};  // of v1::Operation.problem; empty: all
  std::string parent = {};        // parts of this job; empty: jobs that are no part of another
  std::optional<JobKind> kind = std::nullopt;
};

class Queue {
 public:
  virtual ~Queue() = default;

  // Makes the job, or returns the one that it joins: that which has its request_id (a request that joined keeps its
  // id), else an unfinished one of the same identity, else the same parent's part of that name. AlreadyExists when the
  // request_id was given to a request for something else, or the name is taken. A part of a job that has ended, or was
  // cancelled, is cancelled; NotFound when there is no such parent.
  virtual absl::StatusOr<Job> Create(const Job& job, const JoinTerms& terms) = 0;
  // Gives a job that has none its identity. One that another unfinished job has already is left to that.
  virtual absl::Status Identify(absl::string_view name, absl::string_view identity) = 0;

  // Leases the job for `duration`; its `epoch` has grown. nullopt when it is not to be had: it has ended, or another
  // holder's lease of it has not run out. A holder may lease again what it holds: its earlier lease is over.
  virtual absl::StatusOr<std::optional<Job>> Lease(absl::string_view name, absl::string_view holder,
                                                   absl::Duration duration) = 0;
  // The lease lasts for `duration` from now. Returns the job, which says whether it was cancelled.
  virtual absl::StatusOr<Job> Renew(const Fence& fence, absl::Duration duration) = 0;
  // All leases of the holder, those that have run out and nobody has taken, too, last for `duration` from now. Returns
  // what it holds.
  virtual absl::StatusOr<std::vector<LeasedJob>> RenewAll(absl::string_view holder, absl::Duration duration) = 0;
  // Keeps `operation`, which is not done.
  virtual absl::Status Update(const Fence& fence, const v1::Operation& operation) = 0;
  // Ends the job: `operation` is done. Its unfinished parts are cancelled.
  virtual absl::Status Finish(const Fence& fence, const v1::Operation& operation) = 0;
  // Gives the job back, unfinished: anybody may lease it at once.
  virtual absl::Status Requeue(const Fence& fence) = 0;
  // Asks for the end of the job and of its parts, which is their holders' to write, now or when they are leased next.
  // Returns the job.
  virtual absl::StatusOr<Job> Cancel(absl::string_view name) = 0;

  virtual absl::StatusOr<Job> Get(absl::string_view name) = 0;
  // The names of those of no class that `holder` could lease now, oldest first; damaged ones too.
  virtual absl::StatusOr<std::vector<std::string>> Leasable(absl::string_view holder) = 0;
  // Leases a job of a class and a priority that `rooms` have: one whose lease has run out, the oldest first, or else of
  // those that nobody holds the most urgent, the oldest first; nullopt without one. Any number of holders may claim at
  // once: none waits for another, and none gets what another got. DataLoss when that job is damaged; it is leased, and
  // the next claim is of another.
  virtual absl::StatusOr<std::optional<Job>> Claim(absl::string_view /*holder*/, const std::vector<Room>& /*rooms*/,
                                                   absl::Duration /*duration*/) {
    return std::nullopt;
  }
  // Every job that is leased, in the order of their names.
  virtual absl::StatusOr<std::vector<LeasedJob>> Held() = 0;
  // Newest first. Damaged ones are FAILED.
  virtual absl::StatusOr<Page<v1::Operation>> List(const JobFilter& filter, int page_size,
                                                   absl::string_view page_token) = 0;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_QUEUE_H_
