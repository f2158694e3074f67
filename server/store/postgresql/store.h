// The store on PostgreSQL, for any number of processes. docs/fleet.md has the picture.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_STORE_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgresql/hosts.h"
#include "server/store/postgresql/pool.h"
#include "server/store/postgresql/queue.h"
#include "server/store/postgresql/results/kept_blobs.h"
#include "server/store/postgresql/results/kept_code.h"
#include "server/store/rows/trial_uses.h"
#include "server/store/store.h"

namespace attune::store::postgresql {

struct StoreOptions {
  PoolSettings database;
  std::string home = {};                   // of the host whose store this is (queue.h); empty: jobs are any host's
  std::string cache_directory;             // of compiled code, which no other process uses; created when missing
  metrics::Store* metrics = nullptr;       // counts what it does; lives longer
  int64_t blob_limit = kDefaultBlobLimit;  // of all blobs of the database together, by BlobSpace; 0: none is kept here
};

// Wires the parts, holds no logic of its own. While the database is away, calls wait for the pool's patience, then they
// are Unavailable.
class PostgresqlStore : public Store {
 public:
  // Makes the tables, or brings them up to date. FailedPrecondition when a newer version of this program has been
  // there; PermissionDenied when they may not be made; Unavailable when the server does not answer.
  static absl::StatusOr<std::unique_ptr<PostgresqlStore>> Open(const StoreOptions& options);
  // One that has not looked for its database yet: until Prepare has succeeded, what needs that is Unavailable at once,
  // with a retry delay. Compiled code in the cache can be read.
  static absl::StatusOr<std::unique_ptr<PostgresqlStore>> OpenUnprepared(const StoreOptions& options);
  ~PostgresqlStore() override;

  // As Open does, the server tried for so long; may be called until it succeeds, by one thread at a time. Of its errors
  // IsUnreachable (errors.h) is true when the server does not answer.
  absl::Status Prepare(absl::Duration patience);

  absl::StatusOr<std::string> AppendTrial(const v1::Trial& trial, const JobWrite& write) override;
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override;
  absl::Status RecordProfile(absl::string_view trial, const v1::Profile& profile, const JobWrite& write) override;
  absl::Status RecordSanitizing(absl::string_view trial, const v1::Sanitizing& sanitizing,
                                const JobWrite& write) override;
  absl::StatusOr<v1::Trial> FindTrial(const TrialKey& key) override;
  absl::StatusOr<std::vector<v1::Trial>> KnownTrials(absl::string_view problem_text, const Instance& device,
                                                     v1::Policy policy, const v1::Dependencies& dependencies) override;
  absl::StatusOr<std::vector<v1::Trial>> PriorTrials(absl::string_view problem_text, const Instance& device,
                                                     v1::Policy policy, const v1::Dependencies& dependencies,
                                                     int most) override;
  absl::StatusOr<Page<v1::Trial>> ListTrials(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order,
                                             int page_size, absl::string_view page_token) override;
  absl::StatusOr<Retried> RetryTrials(const v1::TrialFilter& filter) override;

  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& incumbent, absl::string_view expected_previous,
                                        const JobWrite& write) override;
  absl::StatusOr<v1::Incumbent> RollBack(absl::string_view problem_text, absl::string_view device_class,
                                         v1::Policy policy, absl::string_view why, absl::string_view to) override;
  absl::StatusOr<v1::Incumbent> Unpin(absl::string_view problem_text, absl::string_view device_class,
                                      v1::Policy policy) override;
  absl::StatusOr<v1::Incumbent> GetIncumbent(absl::string_view problem_text, absl::string_view device_class,
                                             v1::Policy policy) override;
  absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(const IncumbentFilter& filter, int page_size,
                                                     absl::string_view page_token) override;

  absl::StatusOr<std::vector<v1::Incumbent>> IncumbentsOf(const std::vector<std::string>& problem_texts) override;

  absl::StatusOr<std::vector<ServedChange>> ChangesOfServed(absl::Duration back) override;

  absl::StatusOr<std::string> AppendRetiming(const v1::Retiming& retiming, const JobWrite& write) override;
  absl::StatusOr<Page<v1::Retiming>> ListRetimings(const RetimingFilter& filter, int page_size,
                                                   absl::string_view page_token) override;

  absl::Status PutArtifact(const CompiledArtifact& artifact, absl::string_view bytes) override;
  absl::StatusOr<CompiledArtifact> FindArtifact(absl::string_view compile_key, absl::string_view toolchain) override;
  absl::StatusOr<int64_t> ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                               absl::string_view toolchain) override;
  absl::StatusOr<std::string> ReadArtifact(absl::string_view sha256) override;

  absl::StatusOr<v1::Submission> RecordSubmission(const v1::Submission& submission, const JobWrite& write) override;
  absl::StatusOr<v1::Submission> GetSubmission(absl::string_view name) override;
  absl::StatusOr<Page<v1::Submission>> ListSubmissions(const SubmissionFilter& filter, int page_size,
                                                       absl::string_view page_token) override;
  absl::StatusOr<v1::Submission> MoveSubmission(absl::string_view name, const SubmissionMove& move) override;

  Queue& queue() override { return queue_; }
  Hosts& hosts() override { return hosts_; }
  BlobStore& blobs() override { return blobs_; }

  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) override;
  absl::StatusOr<Page<v1::Baseline>> ListBaselines(absl::string_view problem_text, absl::string_view device_id,
                                                   int page_size, absl::string_view page_token) override;
  absl::StatusOr<std::vector<v1::Baseline>> BaselinesOf(const std::vector<std::string>& problem_texts) override;

  absl::StatusOr<Retained> Retain(const Retention& retention, const std::function<bool()>& stopped) override;
  // Unimplemented: PostgreSQL's own tools do that, and have all of it.
  absl::StatusOr<BackupContents> Backup(const std::string& directory) override;

 protected:
  struct Parts {
    std::shared_ptr<Pool> pool;
    std::unique_ptr<KeptCode> code;
  };
  static absl::StatusOr<Parts> PartsOf(const StoreOptions& options);
  PostgresqlStore(Parts parts, const StoreOptions& options);

 private:
  metrics::Store* const metrics_;
  const PoolSettings database_;
  const std::shared_ptr<Pool> pool_;
  PostgresqlQueue queue_;
  PostgresqlHosts hosts_;
  const std::unique_ptr<KeptCode> code_;
  KeptBlobs blobs_;
  TrialUses uses_;
  std::mutex retaining_;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_STORE_H_
