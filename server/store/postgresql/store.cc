#include "server/store/postgresql/store.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/reason.h"
#include "server/store/maintenance/retention_pass.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/postgresql/results/incumbents.h"
#include "server/store/postgresql/results/known_trials.h"
#include "server/store/postgresql/results/recorded.h"
#include "server/store/postgresql/results/trials.h"
#include "server/store/postgresql/upkeep/check_database.h"
#include "server/store/postgresql/upkeep/retention_rows.h"

namespace attune::store::postgresql {
namespace {

// A statement is for so many problems: what it gives is in memory at once, and has some kilobytes for each.
constexpr size_t kProblemsAtOnce = 500;

// All that `read` gives for some of the problems after the others.
template <typename Item, typename Read>
absl::StatusOr<std::vector<Item>> ReadOf(const std::vector<std::string>& problem_texts, const Read& read) {
  std::vector<Item> all;
  for (size_t begin = 0; begin < problem_texts.size(); begin += kProblemsAtOnce) {
    const size_t end = std::min(begin + kProblemsAtOnce, problem_texts.size());
    absl::StatusOr<std::vector<Item>> some =
        read(std::vector<std::string>(problem_texts.begin() + static_cast<std::ptrdiff_t>(begin),
                                      problem_texts.begin() + static_cast<std::ptrdiff_t>(end)));
    if (!some.ok()) return some;
    std::move(some->begin(), some->end(), std::back_inserter(all));
  }
  return all;
}

absl::Status Away(absl::string_view reason) {
  absl::Status status = absl::UnavailableError(absl::StrCat("since this daemon started, ", reason));
  SetRetryDelay(kRetryDelay, status);
  return status;
}

}  // namespace

absl::StatusOr<PostgresqlStore::Parts> PostgresqlStore::PartsOf(const StoreOptions& options) {
  Parts parts = {.pool = std::make_shared<Pool>(options.database), .code = nullptr};
  absl::StatusOr<std::unique_ptr<KeptCode>> code = KeptCode::Open(options.cache_directory, parts.pool.get());
  if (!code.ok()) return code.status();
  parts.code = *std::move(code);
  return parts;
}

PostgresqlStore::PostgresqlStore(Parts parts, const StoreOptions& options)
    : metrics_(options.metrics),
      database_(options.database),
      pool_(std::move(parts.pool)),
      queue_(pool_, options.home),
      hosts_(pool_),
      code_(std::move(parts.code)),
      blobs_(pool_.get(), options.blob_limit) {
  pool_->Close(Away("it was not looked for yet"));
  if (metrics_ == nullptr) return;
  metrics_->writer().Set([pool = pool_] { return metrics::WriterState{.waiting = 0, .writable = pool->reached()}; });
}

PostgresqlStore::~PostgresqlStore() {
  if (metrics_ != nullptr) metrics_->writer().Clear();
}

absl::StatusOr<std::unique_ptr<PostgresqlStore>> PostgresqlStore::Open(const StoreOptions& options) {
  absl::StatusOr<std::unique_ptr<PostgresqlStore>> store = OpenUnprepared(options);
  if (!store.ok()) return store;
  if (absl::Status status = (*store)->Prepare(options.database.patience); !status.ok()) return status;
  return store;
}

absl::StatusOr<std::unique_ptr<PostgresqlStore>> PostgresqlStore::OpenUnprepared(const StoreOptions& options) {
  absl::StatusOr<Parts> parts = PartsOf(options);
  if (!parts.ok()) return parts.status();
  return std::unique_ptr<PostgresqlStore>(new PostgresqlStore(*std::move(parts), options));
}

// By connections of its own: nobody else is to see tables that are not of this version.
absl::Status PostgresqlStore::Prepare(absl::Duration patience) {
  PoolSettings settings = database_;
  settings.patience = patience;
  Pool own(settings);
  absl::Status status = Migrate(own, Migrations());
  if (status.ok()) status = own.Do(CheckRights);
  if (status.ok()) {
    pool_->Open();
  } else {
    pool_->Close(Away(status.message()));
  }
  return status;
}

absl::StatusOr<std::string> PostgresqlStore::AppendTrial(const v1::Trial& trial, const JobWrite& write) {
  MadeRow made = {"trials"};
  absl::StatusOr<std::string> name = pool_->TransactAndReturn<std::string>(
      [&](Connection& c) { return postgresql::AppendTrial(c, trial, write, made); });
  if (name.ok() && metrics_ != nullptr) metrics_->Recorded(trial);
  return name;
}

absl::StatusOr<v1::Trial> PostgresqlStore::GetTrial(absl::string_view name) {
  return pool_->DoAndReturn<v1::Trial>([&](Connection& c) { return postgresql::GetTrial(c, name); });
}

absl::Status PostgresqlStore::RecordProfile(absl::string_view trial, const v1::Profile& profile,
                                            const JobWrite& write) {
  return pool_->Transact([&](Connection& c) { return postgresql::RecordProfile(c, trial, profile, write); });
}

absl::Status PostgresqlStore::RecordSanitizing(absl::string_view trial, const v1::Sanitizing& sanitizing,
                                               const JobWrite& write) {
  return pool_->Transact([&](Connection& c) { return postgresql::RecordSanitizing(c, trial, sanitizing, write); });
}

absl::StatusOr<v1::Trial> PostgresqlStore::FindTrial(const TrialKey& key) {
  return pool_->DoAndReturn<v1::Trial>([&](Connection& c) { return postgresql::FindTrial(c, key); });
}

absl::StatusOr<std::vector<v1::Trial>> PostgresqlStore::KnownTrials(absl::string_view problem_text,
                                                                    const Instance& device, v1::Policy policy,
                                                                    const v1::Dependencies& dependencies) {
  uses_.Note(problem_text, dependencies, absl::Now());
  return pool_->DoAndReturn<std::vector<v1::Trial>>(
      [&](Connection& c) { return postgresql::KnownTrials(c, problem_text, device, policy, dependencies); });
}

absl::StatusOr<std::vector<v1::Trial>> PostgresqlStore::PriorTrials(absl::string_view problem_text,
                                                                    const Instance& device, v1::Policy policy,
                                                                    const v1::Dependencies& dependencies, int most) {
  return pool_->DoAndReturn<std::vector<v1::Trial>>(
      [&](Connection& c) { return postgresql::PriorTrials(c, problem_text, device, policy, dependencies, most); });
}

absl::StatusOr<Page<v1::Trial>> PostgresqlStore::ListTrials(const v1::TrialFilter& filter,
                                                            v1::ListTrialsRequest::Order order, int page_size,
                                                            absl::string_view page_token) {
  return pool_->DoAndReturn<Page<v1::Trial>>(
      [&](Connection& c) { return postgresql::ListTrials(c, filter, order, page_size, page_token); });
}

absl::StatusOr<Retried> PostgresqlStore::RetryTrials(const v1::TrialFilter& filter) {
  return pool_->TransactAndReturn<Retried>([&](Connection& c) { return postgresql::RetryTrials(c, filter); });
}

absl::StatusOr<v1::Incumbent> PostgresqlStore::Promote(const v1::Incumbent& incumbent,
                                                       absl::string_view expected_previous, const JobWrite& write) {
  MadeRow made = {"incumbents"};
  return pool_->TransactAndReturn<v1::Incumbent>(
      [&](Connection& c) { return postgresql::Promote(c, incumbent, expected_previous, write, made); });
}

absl::StatusOr<v1::Incumbent> PostgresqlStore::RollBack(absl::string_view problem_text, absl::string_view device_class,
                                                        v1::Policy policy, absl::string_view why,
                                                        absl::string_view to) {
  MadeRollBack made;
  return pool_->TransactAndReturn<v1::Incumbent>(
      [&](Connection& c) { return postgresql::RollBack(c, problem_text, device_class, policy, why, to, made); });
}

absl::StatusOr<v1::Incumbent> PostgresqlStore::Unpin(absl::string_view problem_text, absl::string_view device_class,
                                                     v1::Policy policy) {
  return pool_->TransactAndReturn<v1::Incumbent>(
      [&](Connection& c) { return postgresql::Unpin(c, problem_text, device_class, policy); });
}

absl::StatusOr<v1::Incumbent> PostgresqlStore::GetIncumbent(absl::string_view problem_text,
                                                            absl::string_view device_class, v1::Policy policy) {
  return pool_->DoAndReturn<v1::Incumbent>(
      [&](Connection& c) { return postgresql::GetIncumbent(c, problem_text, device_class, policy); });
}

absl::StatusOr<Page<v1::Incumbent>> PostgresqlStore::ListIncumbents(const IncumbentFilter& filter, int page_size,
                                                                    absl::string_view page_token) {
  return pool_->DoAndReturn<Page<v1::Incumbent>>(
      [&](Connection& c) { return postgresql::ListIncumbents(c, filter, page_size, page_token); });
}

absl::StatusOr<std::vector<v1::Incumbent>> PostgresqlStore::IncumbentsOf(
    const std::vector<std::string>& problem_texts) {
  return ReadOf<v1::Incumbent>(problem_texts, [this](const std::vector<std::string>& some) {
    return pool_->DoAndReturn<std::vector<v1::Incumbent>>(
        [&some](Connection& c) { return postgresql::IncumbentsOf(c, some); });
  });
}

absl::StatusOr<std::vector<ServedChange>> PostgresqlStore::ChangesOfServed(absl::Duration back) {
  return pool_->DoAndReturn<std::vector<ServedChange>>(
      [back](Connection& connection) { return postgresql::ChangesOfServed(connection, back); });
}

absl::StatusOr<std::string> PostgresqlStore::AppendRetiming(const v1::Retiming& retiming, const JobWrite& write) {
  MadeRow made = {"retimings"};
  return pool_->TransactAndReturn<std::string>(
      [&](Connection& c) { return postgresql::AppendRetiming(c, retiming, write, made); });
}

absl::StatusOr<Page<v1::Retiming>> PostgresqlStore::ListRetimings(const RetimingFilter& filter, int page_size,
                                                                  absl::string_view page_token) {
  return pool_->DoAndReturn<Page<v1::Retiming>>(
      [&](Connection& c) { return postgresql::ListRetimings(c, filter, page_size, page_token); });
}

absl::Status PostgresqlStore::PutArtifact(const CompiledArtifact& artifact, absl::string_view bytes) {
  return code_->Put(artifact, bytes);
}

absl::StatusOr<CompiledArtifact> PostgresqlStore::FindArtifact(absl::string_view compile_key,
                                                               absl::string_view toolchain) {
  return code_->Find(compile_key, toolchain);
}

absl::StatusOr<int64_t> PostgresqlStore::ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                                              absl::string_view toolchain) {
  return code_->ForgetFailed(compile_keys, toolchain);
}

absl::StatusOr<std::string> PostgresqlStore::ReadArtifact(absl::string_view sha256) { return code_->Read(sha256); }

absl::StatusOr<v1::Submission> PostgresqlStore::RecordSubmission(const v1::Submission& submission,
                                                                 const JobWrite& write) {
  MadeRow made = {"submissions"};
  return pool_->TransactAndReturn<v1::Submission>(
      [&](Connection& c) { return postgresql::RecordSubmission(c, submission, write, made); });
}

absl::StatusOr<v1::Submission> PostgresqlStore::GetSubmission(absl::string_view name) {
  return pool_->DoAndReturn<v1::Submission>([&](Connection& c) { return postgresql::GetSubmission(c, name); });
}

absl::StatusOr<Page<v1::Submission>> PostgresqlStore::ListSubmissions(const SubmissionFilter& filter, int page_size,
                                                                      absl::string_view page_token) {
  return pool_->DoAndReturn<Page<v1::Submission>>(
      [&](Connection& c) { return postgresql::ListSubmissions(c, filter, page_size, page_token); });
}

absl::StatusOr<v1::Submission> PostgresqlStore::MoveSubmission(absl::string_view name, const SubmissionMove& move) {
  return pool_->TransactAndReturn<v1::Submission>(
      [&](Connection& c) { return postgresql::MoveSubmission(c, name, move); });
}

absl::StatusOr<v1::Baseline> PostgresqlStore::RecordBaseline(const v1::Baseline& baseline) {
  MadeRow made = {"baselines"};
  return pool_->TransactAndReturn<v1::Baseline>(
      [&](Connection& c) { return postgresql::RecordBaseline(c, baseline, made); });
}

absl::StatusOr<Page<v1::Baseline>> PostgresqlStore::ListBaselines(absl::string_view problem_text,
                                                                  absl::string_view device_id, int page_size,
                                                                  absl::string_view page_token) {
  return pool_->DoAndReturn<Page<v1::Baseline>>(
      [&](Connection& c) { return postgresql::ListBaselines(c, problem_text, device_id, page_size, page_token); });
}

absl::StatusOr<std::vector<v1::Baseline>> PostgresqlStore::BaselinesOf(const std::vector<std::string>& problem_texts) {
  return ReadOf<v1::Baseline>(problem_texts, [this](const std::vector<std::string>& some) {
    return pool_->DoAndReturn<std::vector<v1::Baseline>>(
        [&some](Connection& c) { return postgresql::BaselinesOf(c, some); });
  });
}

absl::StatusOr<Retained> PostgresqlStore::Retain(const Retention& retention, const std::function<bool()>& stopped) {
  const std::lock_guard<std::mutex> one_pass(retaining_);
  Retained retained;
  if (absl::Status status = KeepUses(*pool_, uses_); !status.ok()) return status;
  if (absl::Status status = blobs_.WriteUses(); !status.ok()) return status;
  absl::StatusOr<RetentionRows> rows = RetentionRows::Open(pool_.get(), retention.current);
  if (!rows.ok()) return rows.status();
  if (absl::Status status = RetainRows(*rows, retention, stopped, retained); !status.ok()) return status;
  if (absl::Status status = code_->Retain(retention, stopped, retained); !status.ok()) return status;
  return retained;
}

absl::StatusOr<BackupContents> PostgresqlStore::Backup(const std::string& directory) {
  return absl::UnimplementedError(
      "this store is on PostgreSQL: back it up there (pg_dump, or the server's own archive), artifacts and blobs come "
      "with it");
}

}  // namespace attune::store::postgresql
