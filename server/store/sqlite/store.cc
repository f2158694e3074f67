// The Store on one SQLite file and a folder of artifacts: wires the parts, holds no logic of its own. docs/store.md has
// the picture.
#include "server/store/store.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/store/artifact_files.h"
#include "server/store/checks.h"
#include "server/store/files.h"
#include "server/store/hosts_in_memory.h"
#include "server/store/lock_file.h"
#include "server/store/rows/trial_uses.h"
#include "server/store/sqlite/artifacts.h"
#include "server/store/sqlite/baselines.h"
#include "server/store/sqlite/blobs/kept_blobs.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/incumbents.h"
#include "server/store/sqlite/known_trials.h"
#include "server/store/sqlite/maintenance/retain_artifacts.h"
#include "server/store/sqlite/maintenance/retention_pass.h"
#include "server/store/sqlite/maintenance/write_backup.h"
#include "server/store/sqlite/queue.h"
#include "server/store/sqlite/readers.h"
#include "server/store/sqlite/reports/trial_reports.h"
#include "server/store/sqlite/retimings.h"
#include "server/store/sqlite/submitted/submissions.h"
#include "server/store/sqlite/trials.h"
#include "server/store/sqlite/writer.h"

namespace attune::store {
namespace {

using sqlite::Connection;

class SqliteStore : public Store {
 public:
  SqliteStore(std::string file, LockFile lock, std::unique_ptr<ArtifactFiles> artifacts,
              std::unique_ptr<Connection> writer, const SqliteOptions& options)
      : file_(std::move(file)),
        metrics_(options.metrics),
        lock_(std::move(lock)),
        artifacts_(std::move(artifacts)),
        writer_(std::move(writer), options.metrics),
        readers_(file_),
        queue_(writer_, readers_, options.now),
        hosts_(options.now, /*can_drain=*/false) {}

  // Once, before anything else.
  absl::Status OpenBlobs(const std::string& directory, int64_t limit) {
    auto blobs = sqlite::KeptBlobs::Open(directory, &writer_, &readers_, limit);
    if (!blobs.ok()) return blobs.status();
    blobs_ = *std::move(blobs);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> AppendTrial(const v1::Trial& trial, const JobWrite& write) override {
    absl::StatusOr<std::string> name =
        writer_.WriteAndReturn<std::string>([&](Connection& c) { return sqlite::AppendTrial(c, trial, write); });
    if (name.ok() && metrics_ != nullptr) metrics_->Recorded(trial);
    return name;
  }
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override {
    return readers_.With([&](Connection& c) { return sqlite::GetTrial(c, name); });
  }
  absl::Status RecordProfile(absl::string_view trial, const v1::Profile& profile, const JobWrite& write) override {
    return writer_.Write([&](Connection& c) { return sqlite::RecordProfile(c, trial, profile, write); });
  }
  absl::Status RecordSanitizing(absl::string_view trial, const v1::Sanitizing& sanitizing,
                                const JobWrite& write) override {
    return writer_.Write([&](Connection& c) { return sqlite::RecordSanitizing(c, trial, sanitizing, write); });
  }
  absl::StatusOr<v1::Trial> FindTrial(const TrialKey& key) override {
    return readers_.With([&](Connection& c) { return sqlite::FindTrial(c, key); });
  }
  absl::StatusOr<std::vector<v1::Trial>> KnownTrials(absl::string_view problem_text, const Instance& device,
                                                     v1::Policy policy, const v1::Dependencies& dependencies) override {
    uses_.Note(problem_text, dependencies, absl::Now());
    return readers_.With(
        [&](Connection& c) { return sqlite::KnownTrials(c, problem_text, device, policy, dependencies); });
  }
  absl::StatusOr<std::vector<v1::Trial>> PriorTrials(absl::string_view problem_text, const Instance& device,
                                                     v1::Policy policy, const v1::Dependencies& dependencies,
                                                     int most) override {
    return readers_.With(
        [&](Connection& c) { return sqlite::PriorTrials(c, problem_text, device, policy, dependencies, most); });
  }
  absl::StatusOr<Page<v1::Trial>> ListTrials(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order,
                                             int page_size, absl::string_view page_token) override {
    return readers_.With([&](Connection& c) { return sqlite::ListTrials(c, filter, order, page_size, page_token); });
  }
  absl::StatusOr<Retried> RetryTrials(const v1::TrialFilter& filter) override {
    return writer_.WriteAndReturn<Retried>([&](Connection& c) { return sqlite::RetryTrials(c, filter); });
  }

  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& incumbent, absl::string_view expected_previous,
                                        const JobWrite& write) override {
    return writer_.WriteAndReturn<v1::Incumbent>(
        [&](Connection& c) { return sqlite::Promote(c, incumbent, expected_previous, write); });
  }
  absl::StatusOr<v1::Incumbent> RollBack(absl::string_view problem_text, absl::string_view device_class,
                                         v1::Policy policy, absl::string_view why, absl::string_view to) override {
    return writer_.WriteAndReturn<v1::Incumbent>(
        [&](Connection& c) { return sqlite::RollBack(c, problem_text, device_class, policy, why, to); });
  }
  absl::StatusOr<v1::Incumbent> Unpin(absl::string_view problem_text, absl::string_view device_class,
                                      v1::Policy policy) override {
    return writer_.WriteAndReturn<v1::Incumbent>(
        [&](Connection& c) { return sqlite::Unpin(c, problem_text, device_class, policy); });
  }
  absl::StatusOr<v1::Incumbent> GetIncumbent(absl::string_view problem_text, absl::string_view device_class,
                                             v1::Policy policy) override {
    return readers_.With([&](Connection& c) { return sqlite::GetIncumbent(c, problem_text, device_class, policy); });
  }
  absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(const IncumbentFilter& filter, int page_size,
                                                     absl::string_view page_token) override {
    return readers_.With([&](Connection& c) { return sqlite::ListIncumbents(c, filter, page_size, page_token); });
  }

  absl::StatusOr<std::string> AppendRetiming(const v1::Retiming& retiming, const JobWrite& write) override {
    return writer_.WriteAndReturn<std::string>(
        [&](Connection& c) { return sqlite::AppendRetiming(c, retiming, write); });
  }
  absl::StatusOr<Page<v1::Retiming>> ListRetimings(const RetimingFilter& filter, int page_size,
                                                   absl::string_view page_token) override {
    return readers_.With([&](Connection& c) { return sqlite::ListRetimings(c, filter, page_size, page_token); });
  }

  absl::Status PutArtifact(const CompiledArtifact& artifact, absl::string_view bytes) override {
    if (absl::Status status = CheckArtifact(artifact, bytes); !status.ok()) return status;
    if (!bytes.empty()) {
      absl::Status status = artifacts_->Put(artifact.sha256, bytes);
      writer_.health().Note(status);
      if (!status.ok()) return status;
    }
    return writer_.Write([&](Connection& c) { return sqlite::PutArtifact(c, artifact); });
  }
  absl::StatusOr<CompiledArtifact> FindArtifact(absl::string_view compile_key, absl::string_view toolchain) override {
    return readers_.With([&](Connection& c) { return sqlite::FindArtifact(c, compile_key, toolchain); });
  }
  absl::StatusOr<int64_t> ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                               absl::string_view toolchain) override {
    return writer_.WriteAndReturn<int64_t>(
        [&](Connection& c) { return sqlite::ForgetFailedCompiles(c, compile_keys, toolchain); });
  }
  absl::StatusOr<std::string> ReadArtifact(absl::string_view sha256) override { return artifacts_->Read(sha256); }

  absl::StatusOr<v1::Submission> RecordSubmission(const v1::Submission& submission, const JobWrite& write) override {
    return writer_.WriteAndReturn<v1::Submission>(
        [&](Connection& c) { return sqlite::RecordSubmission(c, submission, write); });
  }
  absl::StatusOr<v1::Submission> GetSubmission(absl::string_view name) override {
    return readers_.With([&](Connection& c) { return sqlite::GetSubmission(c, name); });
  }
  absl::StatusOr<Page<v1::Submission>> ListSubmissions(const SubmissionFilter& filter, int page_size,
                                                       absl::string_view page_token) override {
    return readers_.With([&](Connection& c) { return sqlite::ListSubmissions(c, filter, page_size, page_token); });
  }
  absl::StatusOr<v1::Submission> MoveSubmission(absl::string_view name, const SubmissionMove& move) override {
    return writer_.WriteAndReturn<v1::Submission>([&](Connection& c) { return sqlite::MoveSubmission(c, name, move); });
  }

  Queue& queue() override { return queue_; }
  Hosts& hosts() override { return hosts_; }
  BlobStore& blobs() override { return *blobs_; }

  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) override {
    return writer_.WriteAndReturn<v1::Baseline>([&](Connection& c) { return sqlite::RecordBaseline(c, baseline); });
  }
  absl::StatusOr<Page<v1::Baseline>> ListBaselines(absl::string_view problem_text, absl::string_view device_id,
                                                   int page_size, absl::string_view page_token) override {
    return readers_.With(
        [&](Connection& c) { return sqlite::ListBaselines(c, problem_text, device_id, page_size, page_token); });
  }

  absl::StatusOr<Retained> Retain(const Retention& retention, const std::function<bool()>& stopped) override {
    const std::lock_guard<std::mutex> one_pass(retaining_);
    Retained retained;
    if (absl::Status status = sqlite::KeepUses(writer_, uses_); !status.ok()) return status;
    if (absl::Status status = blobs_->WriteUses(); !status.ok()) return status;
    absl::Status status = sqlite::RetainRows(file_, writer_, retention, stopped, retained);
    if (!status.ok()) return status;
    status = sqlite::RetainArtifacts(readers_, writer_, *artifacts_, retention, stopped, retained);
    if (!status.ok()) return status;
    return retained;
  }

  absl::StatusOr<BackupContents> Backup(const std::string& directory) override {
    return sqlite::WriteBackup(file_, readers_, *artifacts_, directory);
  }

 private:
  const std::string file_;
  metrics::Store* const metrics_;
  TrialUses uses_;
  std::mutex retaining_;
  // In this order, so that at the end readers close before the writer, and nobody else comes in before both have.
  const LockFile lock_;
  const std::unique_ptr<ArtifactFiles> artifacts_;
  sqlite::Writer writer_;
  sqlite::Readers readers_;
  sqlite::SqliteQueue queue_;
  HostsInMemory hosts_;
  std::unique_ptr<sqlite::KeptBlobs> blobs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options) {
  if (options.directory.empty()) return absl::InvalidArgumentError("store: directory is empty; it must name a folder");
  if (absl::Status status = MakeDirectories(options.directory); !status.ok()) return status;
  absl::StatusOr<LockFile> lock = LockFile::Acquire(absl::StrCat(options.directory, "/attune.lock"));
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<ArtifactFiles>> artifacts =
      ArtifactFiles::Open(absl::StrCat(options.directory, "/artifacts"));
  if (!artifacts.ok()) return artifacts.status();
  const std::string file = absl::StrCat(options.directory, "/attune.db");
  absl::StatusOr<std::unique_ptr<Connection>> writer = sqlite::OpenWriter(file);
  if (!writer.ok()) return writer.status();
  auto store =
      std::make_unique<SqliteStore>(file, *std::move(lock), *std::move(artifacts), *std::move(writer), options);
  absl::Status opened = store->OpenBlobs(absl::StrCat(options.directory, "/blobs"), options.blob_limit);
  if (!opened.ok()) return opened;
  return store;
}

}  // namespace attune::store
