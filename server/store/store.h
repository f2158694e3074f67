// Results that outlive the process: trials, incumbents, compiled artifacts, jobs, baselines. Knows no GPU API and no
// SQL dialect; store/sqlite implements it for one process, store/postgresql for many.
//
// Thread-safe. Writes return when they are committed to disk. Reads see every write that returned before them.
//
// A write that fails leaves nothing behind and the store usable: ResourceExhausted when the disk is full (the same
// write succeeds once there is space), Unavailable when it fails, FailedPrecondition when the database was moved or
// cut. DataLoss: the database, or the row asked for, is damaged. Listings take pages of 1 to 1000; 0 means 50.
#ifndef ATTUNE_SERVER_STORE_STORE_H_
#define ATTUNE_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attune/v1/retiming.pb.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/submission.pb.h"
#include "attune/v1/trial.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/metrics/store.h"
#include "server/store/blobs.h"
#include "server/store/hosts.h"
#include "server/store/page.h"
#include "server/store/queue.h"
#include "server/store/retention.h"

namespace attune::store {

// One card of a device class. A class is a v1::Device.fingerprint (`device_class` below): it decides what code does, so
// that verdicts on code and incumbents are a class's. Times are an instance's alone.
struct Instance {
  std::string id;    // v1::Device.id
  std::string uuid;  // v1::Device.uuid; trials without one are of the instance that has their device_id
};

// Whether a verdict is one on the code, which holds on every card of a class: not OK, which says nothing of another
// card's times, nor SLOW; not UNSTABLE and LOST, which may be the card's and the host's doing.
inline bool HoldsForClass(v1::Verdict verdict) {
  return verdict != v1::VERDICT_UNSPECIFIED && verdict != v1::VERDICT_OK && verdict != v1::VERDICT_SLOW &&
         verdict != v1::VERDICT_UNSTABLE && verdict != v1::VERDICT_LOST;
}

// Names one measurement; a stored trial with an equal key (LOST excepted) is never run again.
struct TrialKey {
  std::string problem_text;
  Instance device;
  std::string variant_text;
  v1::Policy policy = v1::POLICY_HOT;
  v1::Dependencies dependencies;
};

// What a compile key gave, good or bad: the cache and, for verdicts other than OK, the quarantine.
struct CompiledArtifact {
  std::string compile_key;  // space::CompileSpec.key
  std::string toolchain;
  v1::Verdict verdict = v1::VERDICT_OK;  // OK, COMPILE_ERROR, TIMEOUT, CRASHED
  std::string log;
  std::string sha256;  // of the artifact; empty unless OK
  std::vector<worker::v1::CompileResponse::Entry> entries;
  double compile_ms = 0;
};

struct IncumbentFilter {
  std::string problem_text = {};  // empty fields do not filter
  std::string device_class = {};
  std::string device_id = {};  // of the card that timed it
  std::optional<v1::Policy> policy = std::nullopt;
  bool history = false;  // also those no longer served
};

// That something else than before is served for a problem, on a class, under a policy.
struct ServedChange {
  std::string problem_text;
  std::string device_class;
  v1::Policy policy = v1::POLICY_HOT;
  absl::Time time;
};

struct RetimingFilter {
  std::string problem_text = {};  // empty fields do not filter
  std::string device_class = {};
  std::string device_id = {};
  std::string device_uuid = {};
  std::optional<v1::Policy> policy = std::nullopt;
  absl::Time begin = absl::InfinitePast();  // finished then or later
  absl::Time end = absl::InfiniteFuture();  // finished before
};

// Of one principal so many that are not adopted are kept, the newest.
inline constexpr int kMostSubmissions = 1000;

struct SubmissionFilter {
  std::string principal = {};  // empty fields do not filter
  std::string loop = {};
  std::string content_hash = {};
  std::optional<v1::Submission::State> state = std::nullopt;
};

// That somebody adopts or withdraws a submission.
struct SubmissionMove {
  v1::Submission::State to = v1::Submission::STATE_UNSPECIFIED;
  std::string principal;
};

// Trials that RetryTrials has changed.
struct Retried {
  int64_t trials = 0;
  std::vector<std::string> problems;  // their texts, each once
};

// What a backup holds.
struct BackupContents {
  int64_t trials = 0;
  int64_t incumbents = 0;  // served
  int64_t jobs = 0;
  int64_t artifacts = 0;          // files
  int64_t missing_artifacts = 0;  // that incumbents name, but the store has no longer
  int64_t bytes = 0;              // of the database and the artifacts
};

class Store {
 public:
  virtual ~Store() = default;

  // Assigns and returns "trials/<n>". The trial's `name` is ignored. InvalidArgument names what it lacks: problem_text,
  // device_id, policy, verdict, variant.family and variant.text must be set. A variant's text stands for the whole
  // message: trials with equal texts come back with the variant that was stored first.
  // Refused when `write` is stale (queue.h).
  virtual absl::StatusOr<std::string> AppendTrial(const v1::Trial& trial, const JobWrite& write) = 0;
  virtual absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) = 0;  // NotFound
  // Keeps what a tool says of a trial's code, which GetTrial then has: in place of an earlier profile, or of earlier
  // runs of the same sanitizers. NotFound. Refused when `write` is stale (queue.h).
  virtual absl::Status RecordProfile(absl::string_view trial, const v1::Profile& profile, const JobWrite& write) = 0;
  virtual absl::Status RecordSanitizing(absl::string_view trial, const v1::Sanitizing& sanitizing,
                                        const JobWrite& write) = 0;
  // What is known under this key: the newest trial of any card of the class when its verdict holds for the class,
  // otherwise the instance's own newest; NotFound. LOST trials are not found, nor is one that is to be tried again.
  virtual absl::StatusOr<v1::Trial> FindTrial(const TrialKey& key) = 0;
  // What FindTrial finds of each variant and source hash, for one problem, device and policy, under dependencies that
  // equal `dependencies` in toolchain, driver and fingerprint (source hashes are compared by the caller); without
  // recipes, in the order they were appended.
  virtual absl::StatusOr<std::vector<v1::Trial>> KnownTrials(absl::string_view problem_text, const Instance& device,
                                                             v1::Policy policy,
                                                             const v1::Dependencies& dependencies) = 0;
  // What other cards of the class have timed: of each variant and source hash their newest, when that is OK and timed;
  // fastest first, at most `most`, without recipes. Where to begin a search; no times of this card.
  virtual absl::StatusOr<std::vector<v1::Trial>> PriorTrials(absl::string_view problem_text, const Instance& device,
                                                             v1::Policy policy, const v1::Dependencies& dependencies,
                                                             int most) = 0;
  // Without recipes; damaged ones are LOST. ORDER_FASTEST is by median, trials that are not OK or not timed last.
  // page_token is the next_page_token of a former answer to the same filter and order; InvalidArgument when it is not.
  virtual absl::StatusOr<Page<v1::Trial>> ListTrials(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order,
                                                     int page_size, absl::string_view page_token) = 0;

  // Has FindTrial and KnownTrials pass over the trials that fit, so that their variants are tried again.
  virtual absl::StatusOr<Retried> RetryTrials(const v1::TrialFilter& filter) = 0;

  // Makes `incumbent.trial` (by name) the one served on every card of its class, which is that of its dependencies;
  // assigns and returns the Incumbent whole. The former one becomes its `previous`. Aborted when the incumbent now
  // served is not `expected_previous` ("" for none): someone was faster. InvalidArgument when the trial is not OK or is
  // of another problem, device, class or policy than `incumbent` says (what it leaves empty, the trial says);
  // promote_time is now unless given. Keeps `timing` and `pinned`. Incumbents' trials have their recipes. Refused when
  // `write` is stale (queue.h).
  virtual absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& incumbent, absl::string_view expected_previous,
                                                const JobWrite& write) = 0;
  // Takes the served incumbent out and serves its previous one again (returned), or, when `to` names one, that one of
  // the previous ones, with all in between taken out too. Its previous one is the last of another variant or,
  // where it is pinned, that was not: to an earlier time alone nobody goes back unless `to` says so. NotFound when `to`
  // is no incumbent of the problem, FailedPrecondition when it is the served one or was taken out before, or when there
  // is no other variant before. `why` is told after the reason of those taken out.
  virtual absl::StatusOr<v1::Incumbent> RollBack(absl::string_view problem_text, absl::string_view device_class,
                                                 v1::Policy policy, absl::string_view why, absl::string_view to) = 0;
  // The served incumbent is no longer pinned; the same again when it was not. NotFound without one.
  virtual absl::StatusOr<v1::Incumbent> Unpin(absl::string_view problem_text, absl::string_view device_class,
                                              v1::Policy policy) = 0;
  virtual absl::StatusOr<v1::Incumbent> GetIncumbent(absl::string_view problem_text, absl::string_view device_class,
                                                     v1::Policy policy) = 0;  // NotFound, also when it is damaged
  // Newest first. A damaged one is left out and logged.
  virtual absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(const IncumbentFilter& filter, int page_size,
                                                             absl::string_view page_token) = 0;

  // What is served of so many problems, on every class and under every policy: as ListIncumbents has it, in few reads
  // where each takes a round trip.
  virtual absl::StatusOr<std::vector<v1::Incumbent>> IncumbentsOf(const std::vector<std::string>& problem_texts);

  // A change may be committed so much later than it says: who looks again reaches back so much farther.
  static constexpr absl::Duration kLatestCommit = absl::Minutes(2);
  // What has changed in the time until now, `back` of it, in this process or another. Empty where no other process can
  // change anything.
  virtual absl::StatusOr<std::vector<ServedChange>> ChangesOfServed(absl::Duration /*back*/) {
    return std::vector<ServedChange>();
  }

  // Assigns and returns "retimings/<n>"; finish_time is now unless given. InvalidArgument names what it lacks:
  // problem_text, device_id, policy, variant and a median above 0 must be set. Refused when `write` is stale (queue.h).
  virtual absl::StatusOr<std::string> AppendRetiming(const v1::Retiming& retiming, const JobWrite& write) = 0;
  // Those stored last first.
  virtual absl::StatusOr<Page<v1::Retiming>> ListRetimings(const RetimingFilter& filter, int page_size,
                                                           absl::string_view page_token) = 0;

  // `bytes` is empty unless the verdict is OK. Content-addressed: the file is written, fsynced and renamed before the
  // row is committed. Replaces what was known of the key, and repairs a damaged or missing file.
  virtual absl::Status PutArtifact(const CompiledArtifact& artifact, absl::string_view bytes) = 0;
  virtual absl::StatusOr<CompiledArtifact> FindArtifact(absl::string_view compile_key,
                                                        absl::string_view toolchain) = 0;  // NotFound
  // Forgets those of the compile keys under `toolchain` whose verdict is not OK; returns how many there were.
  virtual absl::StatusOr<int64_t> ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                                       absl::string_view toolchain) = 0;
  // Checks the hash at every read. NotFound (somebody removed the file) and DataLoss (it is damaged) both mean: what
  // FindArtifact said is no longer so; compile again and PutArtifact.
  virtual absl::StatusOr<std::string> ReadArtifact(absl::string_view sha256) = 0;

  // Assigns and returns it with its "submissions/<n>" and its iteration of the principal's loop. InvalidArgument names
  // what it lacks: content_hash, files, family, principal, operation and state must be set. Of an operation there is
  // one. Forgets those of the principal that are more than kMostSubmissions. Refused when `write` is stale (queue.h).
  virtual absl::StatusOr<v1::Submission> RecordSubmission(const v1::Submission& submission, const JobWrite& write) = 0;
  virtual absl::StatusOr<v1::Submission> GetSubmission(absl::string_view name) = 0;  // with files; NotFound
  // Newest first, without files.
  virtual absl::StatusOr<Page<v1::Submission>> ListSubmissions(const SubmissionFilter& filter, int page_size,
                                                               absl::string_view page_token) = 0;
  // Returns it as it then is, without files. FailedPrecondition when it is adopted though it was not kept, or was
  // withdrawn. One that is so already stays as it is.
  virtual absl::StatusOr<v1::Submission> MoveSubmission(absl::string_view name, const SubmissionMove& move) = 0;

  // The jobs. It lives as long as the store.
  virtual Queue& queue() = 0;
  // Those that have the store open. They live as long as the store.
  virtual Hosts& hosts() = 0;

  // Files of other programs' caches. It lives as long as the store. One that has no place for files keeps none.
  virtual BlobStore& blobs() { return NoBlobs(); }

  // record_time is now unless given.
  virtual absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) = 0;
  // The newest of each problem, device, policy and contender, newest first. Empty texts do not filter.
  virtual absl::StatusOr<Page<v1::Baseline>> ListBaselines(absl::string_view problem_text, absl::string_view device_id,
                                                           int page_size, absl::string_view page_token) = 0;

  // Of so many problems the first kMostPageSize that ListBaselines has of each, newest first, in few reads where each
  // takes a round trip.
  virtual absl::StatusOr<std::vector<v1::Baseline>> BaselinesOf(const std::vector<std::string>& problem_texts);

  // Brings the store within its limits, as far as what must stay allows: a little at a time, other writes in between.
  // Returns when that is done, or soon after `stopped` says so.
  virtual absl::StatusOr<Retained> Retain(const Retention& retention, const std::function<bool()>& stopped) = 0;

  // Copies the store as it is at one moment, while it is in use, into the new directory `directory`: the database,
  // checked, and the artifacts that incumbents name (all others are made again when they are missing). On disk when it
  // returns; after an error nothing of it stays. AlreadyExists when the directory does. backups.h keeps such copies.
  virtual absl::StatusOr<BackupContents> Backup(const std::string& directory) = 0;
};

struct SqliteOptions {
  std::string directory;                        // holds attune.db, artifacts/ and blobs/; created when missing
  std::function<absl::Time()> now = absl::Now;  // of leases
  metrics::Store* metrics = nullptr;            // counts what it does; lives longer
  int64_t blob_limit = kDefaultBlobLimit;       // of all blobs together, by BlobSpace; 0: none is kept
};
// FailedPrecondition when another process has the store open or the file is of a newer version or another application;
// PermissionDenied when it cannot be written; DataLoss when it is no database. The one line says which file.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_STORE_H_
