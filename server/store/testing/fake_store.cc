#include "server/store/testing/fake_store.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "server/store/checks.h"
#include "server/store/testing/fake_store_state.h"
#include "server/store/testing/listing.h"

namespace attune::store {
namespace {

using fake::FitsText;
using fake::StoredBaseline;
using fake::StoredTrial;

// `jobs`: the names that filter.job stands for.
bool Fits(const v1::Trial& trial, const v1::TrialFilter& filter, const std::set<std::string>& jobs) {
  const auto& verdicts = filter.verdicts();
  return FitsText(filter.problem(), trial.problem_text()) && FitsText(filter.device_id(), trial.device_id()) &&
         FitsText(filter.device_class(), ClassOf(trial)) && FitsText(filter.device_uuid(), trial.device_uuid()) &&
         FitsText(filter.family(), trial.variant().family()) && (filter.job().empty() || jobs.contains(trial.job())) &&
         (filter.policy() == v1::POLICY_UNSPECIFIED || filter.policy() == trial.policy()) &&
         (verdicts.empty() || std::find(verdicts.begin(), verdicts.end(), trial.verdict()) != verdicts.end());
}

bool Equal(const v1::Dependencies& a, const v1::Dependencies& b) {
  return a.source_hash() == b.source_hash() && a.toolchain() == b.toolchain() && a.driver() == b.driver() &&
         a.device_fingerprint() == b.device_fingerprint();
}

bool IsOf(const v1::Trial& trial, const Instance& device) {
  return trial.device_uuid().empty() ? trial.device_id() == device.id : trial.device_uuid() == device.uuid;
}

// FindTrial's choice among the trials of one variant, oldest first; null when nothing is known.
const StoredTrial* Known(const std::vector<const StoredTrial*>& same, const Instance& device) {
  const StoredTrial* newest = nullptr;
  const StoredTrial* own = nullptr;
  for (const StoredTrial* stored : same) {
    newest = stored;
    if (IsOf(stored->trial, device)) own = stored;
  }
  const StoredTrial* known = newest != nullptr && HoldsForClass(newest->trial.verdict()) ? newest : own;
  return known != nullptr && !known->retry ? known : nullptr;
}

double RankOf(const v1::Trial& trial) {
  const bool timed = trial.verdict() == v1::VERDICT_OK && trial.timing().median_us() > 0;
  return timed ? trial.timing().median_us() : std::numeric_limits<double>::infinity();
}

}  // namespace

const StoredTrial* FakeStore::State::Find(absl::string_view name) const {
  for (const StoredTrial& stored : trials) {
    if (stored.trial.name() == name) return &stored;
  }
  return nullptr;
}

std::map<std::string, std::vector<const StoredTrial*>> FakeStore::State::ByVariant(
    absl::string_view problem_text, v1::Policy policy, const v1::Dependencies& dependencies) const {
  std::map<std::string, std::vector<const StoredTrial*>> by_variant;
  for (const StoredTrial& stored : trials) {
    const v1::Trial& trial = stored.trial;
    v1::Dependencies own = trial.dependencies();
    own.set_source_hash(dependencies.source_hash());
    if (trial.verdict() == v1::VERDICT_LOST || trial.problem_text() != problem_text || trial.policy() != policy ||
        !Equal(own, dependencies)) {
      continue;
    }
    by_variant[absl::StrCat(trial.variant().text(), "\n", trial.dependencies().source_hash())].push_back(&stored);
  }
  return by_variant;
}

std::shared_ptr<FakeStore::State> FakeStore::MakeState(std::function<absl::Time()> now) {
  return std::make_shared<State>(std::move(now));
}
FakeStore::FakeStore() : FakeStore(MakeState()) {}

std::vector<v1::Trial> FakeStore::trials() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<v1::Trial> trials;
  for (const StoredTrial& stored : state_->trials) trials.push_back(stored.trial);
  return trials;
}
void FakeStore::FailAppends(absl::Status status) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->append = std::move(status);
}

void FakeStore::FailReads(absl::Status status) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->read = std::move(status);
}
void FakeStore::LoseArtifactFiles() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->files.clear();
}
void FakeStore::LoseArtifact(const std::string& sha256) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->files.erase(sha256);
}

absl::StatusOr<std::string> FakeStore::AppendTrial(const v1::Trial& trial, const JobWrite& write) {
  if (absl::Status status = CheckTrial(trial); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->append.ok()) return state_->append;
  return queue().Once(write, [&]() -> absl::StatusOr<std::string> {
    StoredTrial& stored = state_->trials.emplace_back();
    stored.id = static_cast<int64_t>(state_->trials.size());
    stored.trial = trial;
    stored.trial.set_name(absl::StrCat("trials/", stored.id));
    stored.trial.clear_profile();
    stored.trial.clear_sanitizing();
    *stored.trial.mutable_variant() = state_->variants.emplace(trial.variant().text(), trial.variant()).first->second;
    return stored.trial.name();
  });
}

absl::StatusOr<v1::Trial> FakeStore::GetTrial(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (const StoredTrial* stored = state_->Find(name); stored != nullptr) {
    v1::Trial trial = stored->trial;
    if (const auto reports = state_->reports.find(trial.name()); reports != state_->reports.end()) {
      trial.MergeFrom(reports->second);
    }
    return trial;
  }
  return absl::NotFoundError(absl::StrCat("trial '", name, "' does not exist"));
}

absl::StatusOr<v1::Trial> FakeStore::FindTrial(const TrialKey& key) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->read.ok()) return state_->read;
  const auto by_variant = state_->ByVariant(key.problem_text, key.policy, key.dependencies);
  const auto same = by_variant.find(absl::StrCat(key.variant_text, "\n", key.dependencies.source_hash()));
  const StoredTrial* const known = same == by_variant.end() ? nullptr : Known(same->second, key.device);
  if (known == nullptr) return absl::NotFoundError("no such trial");
  return known->trial;
}

absl::StatusOr<std::vector<v1::Trial>> FakeStore::KnownTrials(absl::string_view problem_text, const Instance& device,
                                                              v1::Policy policy, const v1::Dependencies& dependencies) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->read.ok()) return state_->read;
  std::map<int64_t, v1::Trial> known;
  for (const auto& [key, same] : state_->ByVariant(problem_text, policy, dependencies)) {
    if (const StoredTrial* stored = Known(same, device); stored != nullptr) known.emplace(stored->id, stored->trial);
  }
  std::vector<v1::Trial> trials;
  for (auto& [id, trial] : known) {
    trial.clear_recipe();
    trials.push_back(std::move(trial));
  }
  return trials;
}

absl::StatusOr<std::vector<v1::Trial>> FakeStore::PriorTrials(absl::string_view problem_text, const Instance& device,
                                                              v1::Policy policy, const v1::Dependencies& dependencies,
                                                              int most) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::map<std::pair<double, int64_t>, v1::Trial> priors;
  for (auto& [key, same] : state_->ByVariant(problem_text, policy, dependencies)) {
    const StoredTrial* newest = nullptr;
    for (const StoredTrial* stored : same) {
      if (!IsOf(stored->trial, device)) newest = stored;
    }
    if (newest == nullptr || newest->retry) continue;
    const double rank = RankOf(newest->trial);
    if (rank < std::numeric_limits<double>::infinity()) priors.emplace(std::pair(rank, newest->id), newest->trial);
  }
  std::vector<v1::Trial> trials;
  for (auto& [rank, trial] : priors) {
    if (trials.size() == static_cast<size_t>(most)) break;
    trial.clear_recipe();
    trials.push_back(std::move(trial));
  }
  return trials;
}

absl::StatusOr<Page<v1::Trial>> FakeStore::ListTrials(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order,
                                                      int page_size, absl::string_view page_token) {
  const bool fastest = order == v1::ListTrialsRequest::ORDER_FASTEST;
  const std::set<std::string> jobs = state_->queue.WithParts(filter.job());
  std::vector<Row<v1::Trial>> rows;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (auto it = state_->trials.rbegin(); it != state_->trials.rend(); ++it) {
      if (!Fits(it->trial, filter, jobs)) continue;
      Row<v1::Trial>& row = rows.emplace_back();
      row.key = {it->id, RankOf(it->trial)};
      row.item = it->trial;
      row.item.clear_recipe();
    }
  }
  const std::string listing = absl::StrCat(fastest ? "fastest trials " : "newest trials ", filter.SerializeAsString());
  if (!fastest) return Cut(std::move(rows), listing, page_size, page_token, IsOlder);
  const auto slower = [](const PageKey& row, const PageKey& last) {
    return std::pair(row.rank, row.id) > std::pair(last.rank, last.id);
  };
  std::sort(rows.begin(), rows.end(),
            [&slower](const Row<v1::Trial>& a, const Row<v1::Trial>& b) { return slower(b.key, a.key); });
  return Cut(std::move(rows), listing, page_size, page_token, slower);
}

absl::StatusOr<Retried> FakeStore::RetryTrials(const v1::TrialFilter& filter) {
  const std::set<std::string> jobs = state_->queue.WithParts(filter.job());
  const std::lock_guard<std::mutex> lock(state_->mutex);
  Retried retried;
  std::set<std::string> problems;
  for (StoredTrial& stored : state_->trials) {
    if (stored.retry || !Fits(stored.trial, filter, jobs)) continue;
    stored.retry = true;
    ++retried.trials;
    problems.insert(stored.trial.problem_text());
  }
  retried.problems.assign(problems.begin(), problems.end());
  return retried;
}

absl::Status FakeStore::PutArtifact(const CompiledArtifact& artifact, absl::string_view bytes) {
  if (absl::Status status = CheckArtifact(artifact, bytes); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->artifacts[{artifact.compile_key, artifact.toolchain}] = artifact;
  if (!bytes.empty()) state_->files[artifact.sha256] = std::string(bytes);
  return absl::OkStatus();
}

absl::StatusOr<CompiledArtifact> FakeStore::FindArtifact(absl::string_view compile_key, absl::string_view toolchain) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->read.ok()) return state_->read;
  const auto it = state_->artifacts.find({std::string(compile_key), std::string(toolchain)});
  if (it == state_->artifacts.end()) return absl::NotFoundError("not compiled yet");
  return it->second;
}

absl::StatusOr<int64_t> FakeStore::ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                                        absl::string_view toolchain) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return std::erase_if(state_->artifacts, [&](const auto& entry) {
    return entry.first.second == toolchain && entry.second.verdict != v1::VERDICT_OK &&
           std::find(compile_keys.begin(), compile_keys.end(), entry.first.first) != compile_keys.end();
  });
}

absl::StatusOr<std::string> FakeStore::ReadArtifact(absl::string_view sha256) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto it = state_->files.find(std::string(sha256));
  if (it == state_->files.end()) return absl::NotFoundError("no such artifact");
  return it->second;
}

FakeQueue& FakeStore::queue() { return state_->queue; }
Hosts& FakeStore::hosts() { return state_->hosts; }
FakeBlobs& FakeStore::blobs() { return state_->blobs; }

absl::StatusOr<v1::Baseline> FakeStore::RecordBaseline(const v1::Baseline& baseline) {
  if (absl::Status status = CheckBaseline(baseline); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  StoredBaseline& stored = state_->baselines.emplace_back();
  stored.id = static_cast<int64_t>(state_->baselines.size());
  stored.baseline = baseline;
  if (!baseline.has_record_time()) *stored.baseline.mutable_record_time() = fake::Now();
  return stored.baseline;
}

absl::StatusOr<Page<v1::Baseline>> FakeStore::ListBaselines(absl::string_view problem_text, absl::string_view device_id,
                                                            int page_size, absl::string_view page_token) {
  std::vector<Row<v1::Baseline>> rows;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    std::set<std::string> listed;
    for (auto it = state_->baselines.rbegin(); it != state_->baselines.rend(); ++it) {
      const v1::Baseline& baseline = it->baseline;
      const std::string key = absl::StrCat(baseline.problem_text(), "\n", baseline.device_id(), "\n",
                                           static_cast<int>(baseline.policy()), "\n", baseline.contender());
      if (!FitsText(std::string(problem_text), baseline.problem_text()) ||
          !FitsText(std::string(device_id), baseline.device_id()) || !listed.insert(key).second) {
        continue;
      }
      rows.push_back({{it->id}, baseline});
    }
  }
  const std::string listing = absl::StrCat("baselines ", problem_text, " ", device_id);
  return Cut(std::move(rows), listing, page_size, page_token, IsOlder);
}

absl::StatusOr<std::string> FakeStore::AppendRetiming(const v1::Retiming& retiming, const JobWrite& write) {
  if (absl::Status status = CheckRetiming(retiming); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->append.ok()) return state_->append;
  return queue().Once(write, [&]() -> absl::StatusOr<std::string> {
    v1::Retiming& stored = state_->retimings.emplace_back(retiming);
    stored.set_name(absl::StrCat("retimings/", state_->retimings.size()));
    stored.set_count(1);
    if (!stored.has_finish_time()) *stored.mutable_finish_time() = fake::Now();
    return stored.name();
  });
}

absl::StatusOr<Page<v1::Retiming>> FakeStore::ListRetimings(const RetimingFilter& filter, int page_size,
                                                            absl::string_view page_token) {
  std::vector<Row<v1::Retiming>> rows;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (size_t i = state_->retimings.size(); i > 0; --i) {
      const v1::Retiming& retiming = state_->retimings[i - 1];
      const absl::Time time =
          absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(retiming.finish_time()));
      if (FitsText(filter.problem_text, retiming.problem_text()) && FitsText(filter.device_id, retiming.device_id()) &&
          FitsText(filter.device_uuid, retiming.device_uuid()) &&
          FitsText(filter.device_class, retiming.dependencies().device_fingerprint()) &&
          (!filter.policy.has_value() || filter.policy == retiming.policy()) && filter.begin <= time &&
          time < filter.end) {
        rows.push_back({{static_cast<int64_t>(i)}, retiming});
      }
    }
  }
  const std::string listing =
      absl::StrCat("retimings\n", filter.problem_text, "\n", filter.device_class, "\n", filter.device_id, "\n",
                   filter.device_uuid, "\n", filter.policy.value_or(v1::POLICY_UNSPECIFIED), "\n",
                   absl::ToUnixNanos(filter.begin), "\n", absl::ToUnixNanos(filter.end));
  return Cut(std::move(rows), listing, page_size, page_token, IsOlder);
}

absl::StatusOr<Retained> FakeStore::Retain(const Retention&, const std::function<bool()>&) { return Retained(); }

absl::StatusOr<BackupContents> FakeStore::Backup(const std::string&) {
  return absl::UnimplementedError("a store in memory has no files to copy");
}

}  // namespace attune::store
