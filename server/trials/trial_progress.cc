#include "server/trials/trial_progress.h"

#include <algorithm>
#include <optional>

#include "server/base/proto_time.h"
#include "server/trials/device_slot.h"
#include "server/trials/pace.h"
#include "server/trials/trial.h"

namespace attune::trials {

void TrialProgress::CountCompile() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++compiles_;
}

void TrialProgress::CountRun() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++run_;
}

void TrialProgress::AddCode(const std::string& compile_key, absl::Duration compiling) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (codes_.insert(compile_key).second) compiling_ += compiling;
}

void TrialProgress::SetPlayOff(absl::Duration expected) {
  const std::lock_guard<std::mutex> lock(mutex_);
  play_off_ = expected;
}

int64_t TrialProgress::run() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return run_;
}

int64_t TrialProgress::compiles() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return compiles_;
}

absl::Duration TrialProgress::compiling() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return compiling_;
}

void TrialProgress::Update(const v1::Trial* trial, bool reused, absl::Duration budget) {
  const std::lock_guard<std::mutex> lock(mutex_);
  job_.progress.Change([&](v1::OperationProgress& progress) {
    progress.set_compiles_done(compiles_);
    progress.set_compiles_total(std::max(progress.compiles_total(), compiles_));
    if (shares_.several()) shares_.Tell(progress);
    if (trial == nullptr) return;
    progress.set_trials_done(progress.trials_done() + 1);
    progress.set_trials_total(std::max(progress.trials_total(), progress.trials_done()));
    if (reused) progress.set_trials_reused(progress.trials_reused() + 1);
    v1::VerdictCount* count = nullptr;
    for (v1::VerdictCount& row : *progress.mutable_verdicts()) {
      if (row.verdict() == trial->verdict()) count = &row;
    }
    if (count == nullptr) {
      count = progress.add_verdicts();
      count->set_verdict(trial->verdict());
    }
    count->set_count(count->count() + 1);
    if (Timed(*trial) &&
        (!Timed(progress.best()) || trial->timing().median_us() < progress.best().timing().median_us())) {
      *progress.mutable_best() = *trial;
      progress.mutable_best()->clear_recipe();
    }
    SetCost(setting_.before, shares_.CostFrom(0), absl::ToDoubleMilliseconds(compiling_), progress);
    UpdateEtaLocked(budget, progress);
  });
}

void TrialProgress::UpdateEtaLocked(absl::Duration budget, v1::OperationProgress& progress) const {
  const int64_t known_left = std::max<int64_t>(0, setting_.known - progress.trials_reused());
  const int64_t trials_left = progress.trials_total() - progress.trials_done() - known_left;
  const auto codes = static_cast<int64_t>(codes_.size());
  const std::optional<absl::Duration> left =
      TimeLeft({run_, shares_.busy(), codes, compiling_, setting_.compilers, std::max(shares_.at_work(), 1)},
               trials_left, progress.compiles_total() - std::max(codes, compiles_));
  if (!left.has_value()) return progress.clear_eta();
  SetDuration(std::min(*left, budget) + play_off_, progress.mutable_eta());
}

}  // namespace attune::trials
