// The store in memory, for tests: store.h's semantics without a disk.
#ifndef ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_H_
#define ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_H_

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/store.h"

namespace attune::store {

class FakeStore : public store::Store {
 public:
  // The tests' own view.
  std::vector<v1::Trial> trials() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return trials_;
  }
  void FailAppends(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    append_ = std::move(status);
  }
  // Of incumbents.
  void FailReads(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    read_ = std::move(status);
  }
  void LoseArtifactFiles() {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_.clear();
  }

  absl::StatusOr<std::string> AppendTrial(const v1::Trial& trial) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!append_.ok()) return append_;
    trials_.push_back(trial);
    trials_.back().set_name(absl::StrCat("trials/", trials_.size()));
    return trials_.back().name();
  }
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const v1::Trial& trial : trials_) {
      if (trial.name() == name) return trial;
    }
    return absl::NotFoundError(absl::StrCat("no trial ", name));
  }
  absl::StatusOr<v1::Trial> FindTrial(const store::TrialKey& key) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = trials_.rbegin(); it != trials_.rend(); ++it) {
      if (it->verdict() != v1::VERDICT_LOST && it->problem_text() == key.problem_text &&
          it->device_id() == key.device_id && it->variant().text() == key.variant_text && it->policy() == key.policy &&
          it->dependencies().SerializeAsString() == key.dependencies.SerializeAsString()) {
        if (retry_.contains(it->name())) break;
        return *it;
      }
    }
    return absl::NotFoundError("no such trial");
  }
  absl::StatusOr<std::vector<v1::Trial>> KnownTrials(absl::string_view problem_text, absl::string_view device_id,
                                                     v1::Policy policy, const v1::Dependencies& dependencies) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::string, v1::Trial> newest;
    for (const v1::Trial& trial : trials_) {
      const v1::Dependencies& own = trial.dependencies();
      if (trial.verdict() != v1::VERDICT_LOST && trial.problem_text() == problem_text &&
          trial.device_id() == device_id && trial.policy() == policy && own.toolchain() == dependencies.toolchain() &&
          own.driver() == dependencies.driver() && own.device_fingerprint() == dependencies.device_fingerprint()) {
        newest[trial.variant().text() + own.source_hash()] = trial;
      }
    }
    std::vector<v1::Trial> known;
    for (auto& [key, trial] : newest) {
      if (retry_.contains(trial.name())) continue;
      trial.clear_recipe();
      known.push_back(trial);
    }
    return known;
  }
  absl::StatusOr<store::Page<v1::Trial>> ListTrials(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order,
                                                    int page_size, absl::string_view page_token) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    store::Page<v1::Trial> page;
    for (const v1::Trial& trial : trials_) {
      const bool verdict = filter.verdicts().empty() || std::find(filter.verdicts().begin(), filter.verdicts().end(),
                                                                  trial.verdict()) != filter.verdicts().end();
      if (verdict && (filter.problem().empty() || trial.problem_text() == filter.problem()) &&
          (filter.device_id().empty() || trial.device_id() == filter.device_id()) &&
          (filter.policy() == v1::POLICY_UNSPECIFIED || trial.policy() == filter.policy())) {
        page.items.push_back(trial);
        page.items.back().clear_recipe();
      }
    }
    std::reverse(page.items.begin(), page.items.end());
    if (order == v1::ListTrialsRequest::ORDER_FASTEST) {
      std::stable_sort(page.items.begin(), page.items.end(), [](const v1::Trial& a, const v1::Trial& b) {
        return a.timing().median_us() < b.timing().median_us();
      });
    }
    if (page.items.size() > static_cast<size_t>(page_size)) page.items.resize(page_size);
    return page;
  }

  absl::StatusOr<store::Retried> RetryTrials(const v1::TrialFilter& filter) override {
    const auto page = ListTrials(filter, v1::ListTrialsRequest::ORDER_NEWEST, 1000, "");
    const std::lock_guard<std::mutex> lock(mutex_);
    store::Retried retried;
    for (const v1::Trial& trial : page->items) {
      if (!retry_.insert(trial.name()).second) continue;
      ++retried.trials;
      if (std::find(retried.problems.begin(), retried.problems.end(), trial.problem_text()) == retried.problems.end()) {
        retried.problems.push_back(trial.problem_text());
      }
    }
    return retried;
  }

  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& incumbent, absl::string_view expected_previous) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string key = Key(incumbent.problem_text(), incumbent.device_id(), incumbent.policy());
    std::vector<v1::Incumbent>& history = incumbents_[key];
    const std::string previous = history.empty() ? "" : history.back().name();
    if (previous != expected_previous) return absl::AbortedError(absl::StrCat("served is ", previous));
    v1::Incumbent& made = history.emplace_back(incumbent);
    made.set_name(absl::StrCat("incumbents/", ++last_incumbent_));
    made.set_previous(previous);
    const auto trial = std::find_if(trials_.begin(), trials_.end(), [&](const v1::Trial& candidate) {
      return candidate.name() == incumbent.trial().name();
    });
    if (trial == trials_.end()) return absl::NotFoundError("the incumbent's trial is not stored");
    *made.mutable_trial() = *trial;
    return made;
  }
  absl::StatusOr<v1::Incumbent> RollBack(absl::string_view problem_text, absl::string_view device_id, v1::Policy policy,
                                         absl::string_view why, absl::string_view to) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<v1::Incumbent>& history = incumbents_[Key(problem_text, device_id, policy)];
    if (history.size() < 2) return absl::FailedPreconditionError("nothing before it");
    history.pop_back();
    return history.back();
  }
  absl::StatusOr<v1::Incumbent> Unpin(absl::string_view problem_text, absl::string_view device_id,
                                      v1::Policy policy) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<v1::Incumbent>& history = incumbents_[Key(problem_text, device_id, policy)];
    if (history.empty()) return absl::NotFoundError("no incumbent");
    history.back().set_pinned(false);
    return history.back();
  }
  absl::StatusOr<v1::Incumbent> GetIncumbent(absl::string_view problem_text, absl::string_view device_id,
                                             v1::Policy policy) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!read_.ok()) return read_;
    const auto it = incumbents_.find(Key(problem_text, device_id, policy));
    if (it == incumbents_.end() || it->second.empty()) return absl::NotFoundError("no incumbent");
    return it->second.back();
  }
  absl::StatusOr<store::Page<v1::Incumbent>> ListIncumbents(const store::IncumbentFilter& filter, int page_size,
                                                            absl::string_view page_token) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    store::Page<v1::Incumbent> page;
    for (const auto& [key, history] : incumbents_) {
      if (!history.empty()) page.items.push_back(history.back());
    }
    return page;
  }

  // As when somebody removes the file.
  void LoseArtifact(const std::string& sha256) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_.erase(sha256);
  }
  absl::Status PutArtifact(const store::CompiledArtifact& artifact, absl::string_view bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    artifacts_[{artifact.compile_key, artifact.toolchain}] = artifact;
    if (!artifact.sha256.empty()) files_[artifact.sha256] = std::string(bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<store::CompiledArtifact> FindArtifact(absl::string_view compile_key,
                                                       absl::string_view toolchain) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = artifacts_.find({std::string(compile_key), std::string(toolchain)});
    if (it == artifacts_.end()) return absl::NotFoundError("not compiled yet");
    return it->second;
  }
  absl::StatusOr<int64_t> ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                               absl::string_view toolchain) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::erase_if(artifacts_, [&](const auto& entry) {
      return entry.first.second == toolchain && entry.second.verdict != v1::VERDICT_OK &&
             std::find(compile_keys.begin(), compile_keys.end(), entry.first.first) != compile_keys.end();
    });
  }
  absl::StatusOr<std::string> ReadArtifact(absl::string_view sha256) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = files_.find(std::string(sha256));
    if (it == files_.end()) return absl::NotFoundError("no such artifact");
    return it->second;
  }

  absl::StatusOr<store::Job> CreateJob(const store::Job& job) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const store::Job& other : jobs_) {
      if (!job.request_id.empty() && other.request_id == job.request_id) return other;
    }
    jobs_.push_back(job);
    return job;
  }
  absl::Status UpdateJob(absl::string_view name, const v1::Operation& operation) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (store::Job& job : jobs_) {
      if (job.name != name) continue;
      job.operation = operation;
      return absl::OkStatus();
    }
    return absl::NotFoundError(absl::StrCat("no operation ", name));
  }
  absl::StatusOr<store::Job> GetJob(absl::string_view name) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const store::Job& job : jobs_) {
      if (job.name == name) return job;
    }
    return absl::NotFoundError(absl::StrCat("no operation ", name));
  }
  absl::StatusOr<std::vector<store::Job>> UnfinishedJobs() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<store::Job> unfinished;
    for (const store::Job& job : jobs_) {
      if (!job.operation.done()) unfinished.push_back(job);
    }
    return unfinished;
  }
  absl::StatusOr<store::Page<v1::Operation>> ListJobs(const store::JobFilter& filter, int page_size,
                                                      absl::string_view page_token) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    store::Page<v1::Operation> page;
    for (const store::Job& job : jobs_) page.items.push_back(job.operation);
    return page;
  }

  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    baselines_.push_back(baseline);
    return baseline;
  }
  absl::StatusOr<store::Page<v1::Baseline>> ListBaselines(absl::string_view problem_text, absl::string_view device_id,
                                                          int page_size, absl::string_view page_token) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    store::Page<v1::Baseline> page;
    for (const v1::Baseline& baseline : baselines_) {
      if (baseline.problem_text() == problem_text && baseline.device_id() == device_id) page.items.push_back(baseline);
    }
    return page;
  }
  absl::StatusOr<store::BackupContents> Backup(const std::string& directory) override {
    return absl::UnimplementedError("in memory");
  }

 private:
  static std::string Key(absl::string_view problem_text, absl::string_view device_id, v1::Policy policy) {
    return absl::StrCat(problem_text, " ", device_id, " ", static_cast<int>(policy));
  }

  mutable std::mutex mutex_;
  absl::Status append_;
  absl::Status read_;
  std::vector<v1::Trial> trials_;
  std::map<std::string, std::vector<v1::Incumbent>> incumbents_;
  std::set<std::string> retry_;  // names of trials that are to be tried again
  int last_incumbent_ = 0;
  std::map<std::pair<std::string, std::string>, store::CompiledArtifact> artifacts_;
  std::map<std::string, std::string> files_;
  std::vector<store::Job> jobs_;
  std::vector<v1::Baseline> baselines_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_H_
