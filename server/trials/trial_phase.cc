#include "server/trials/trial_phase.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"
#include "server/catalog/code_rejection.h"
#include "server/catalog/host.h"
#include "server/trials/pace.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"

namespace attune::trials {
namespace {

constexpr int kDeviceTries = 3;     // of a trial that the infrastructure lost
constexpr int kMostLostInARow = 3;  // then the infrastructure itself is broken

CompileAhead::Options AheadOptions(const TrialPhase::Means& means, const Job& job, const TrialPhase::Plan& plan) {
  return {&means.code.store(),
          &means.code.pool(),
          &job,
          plan.tuning_key->toolchain,
          means.compile_ahead,
          CompilePriority(job.priority, /*awaited=*/false),
          plan.retry_known};
}

store::TrialKey KeyOf(const search::Candidate& candidate, const catalog::TuningKey& tuning_key) {
  return {tuning_key.problem_text, catalog::InstanceOf(tuning_key.device), candidate.text, tuning_key.policy,
          catalog::DependenciesOf(*candidate.variant.family, tuning_key)};
}

// How many of those that the strategy will ask for have a trial, as far as that can be told before it is asked.
int64_t CountKnown(const TrialPhase::Plan& plan) {
  if (const size_t begun_with = plan.strategy->Known().size(); begun_with > 0) return static_cast<int64_t>(begun_with);
  if (plan.retry_known) return 0;
  const std::vector<search::Candidate>& all = plan.candidates->all;
  const auto known = std::count_if(all.begin(), all.end(),
                                   [](const search::Candidate& candidate) { return candidate.known.has_value(); });
  const double share = all.empty() ? 0 : static_cast<double>(plan.strategy->Total()) / static_cast<double>(all.size());
  return static_cast<int64_t>(static_cast<double>(known) * std::min(share, 1.0));
}

}  // namespace

TrialPhase::TrialPhase(const Means& means, const Job& job, const Plan& plan)
    : means_(means),
      job_(job),
      plan_(plan),
      known_(CountKnown(plan_)),
      recorder_(&means.code.store(), job, [this](size_t index, const v1::Trial& trial) { Recorded(index, trial); }),
      ahead_(
          AheadOptions(means, job, plan_), [this](bool room) { return Next(room); }, [this] { Compiled(); }) {}

TrialPhase::~TrialPhase() = default;

absl::Status TrialPhase::Run(DeviceUse& use) {
  const std::stop_token stop = job_.stop;
  const std::stop_callback stopper(stop, [this] { ahead_.Stop(); });
  const absl::Duration busy = use.busy();
  absl::Status status;
  while (status.ok() && !stop.stop_requested()) {
    const absl::Duration idle = means_.clock();
    std::optional<CompileAhead::Ready> ready = ahead_.Take([this](const std::vector<size_t>& candidates) {
      const std::lock_guard<std::mutex> lock(strategy_mutex_);
      return plan_.strategy->Choose(candidates);
    });
    if (!ready.has_value()) break;
    waited_for_code_ = means_.clock() - idle;
    status = Try(ready->candidate, ready->code, use);
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_ = use.busy() - busy;
    cost_ = use.cost();
    if (plan_.plays_off) play_off_ = PlayOffTime(use.prepare_time());
  }
  ahead_.End();              // its thread may be thinking
  if (status.ok()) Think();  // what the strategy claims in the end is from every batch that has ended
  absl::Status recorded = recorder_.Flush();
  if (!status.ok()) return status;
  if (!recorded.ok()) return recorded;
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  return absl::OkStatus();
}

CompileAhead::Wanted TrialPhase::Next(bool room) {
  if (!std::exchange(begun_, true)) ReuseKnown();
  Think();
  CompileAhead::Wanted wanted;
  {
    const std::lock_guard<std::mutex> lock(strategy_mutex_);
    wanted.dropped = plan_.strategy->Drop();
  }
  if (room) wanted.item = NextItem();
  const std::lock_guard<std::mutex> lock(strategy_mutex_);
  wanted.over = !wanted.item.has_value() && plan_.strategy->Done();
  return wanted;
}

void TrialPhase::ReuseKnown() {
  for (size_t index : plan_.strategy->Known()) {
    v1::Trial known = *plan_.candidates->all[index].known;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      NoteLocked(index, known);
    }
    UpdateProgress(&known, true);
  }
}

void TrialPhase::Think() {
  while (!job_.stop.stop_requested()) {
    search::Strategy::Thought thought;
    {
      const std::lock_guard<std::mutex> lock(strategy_mutex_);
      thought = plan_.strategy->Think();
    }
    if (!thought) return;
    const std::function<void()> adopt = thought();
    std::string stage;
    {
      const std::lock_guard<std::mutex> lock(strategy_mutex_);
      adopt();
      stage = plan_.strategy->Stage();
    }
    job_.progress.Change([&](v1::OperationProgress& progress) {
      if (progress.phase() == v1::OperationProgress::PHASE_TRIALS) progress.set_message(stage);
    });
  }
}

std::optional<CompileAhead::Item> TrialPhase::NextItem() {
  while (true) {
    std::optional<size_t> index;
    {
      const std::lock_guard<std::mutex> lock(strategy_mutex_);
      index = plan_.strategy->Speculate();
    }
    if (!index.has_value()) return std::nullopt;
    if (std::optional<v1::Trial> known = Known(*index); known.has_value()) {
      Reuse(*index, *std::move(known));
      continue;
    }
    const search::Candidate& candidate = plan_.candidates->all[*index];
    return CompileAhead::Item{*index, candidate.spec.key, [this, &candidate] {
                                worker::v1::CompileRequest request = MakeCompileRequest(
                                    *candidate.variant.family, candidate.spec, plan_.tuning_key->device);
                                request.set_most_seconds(plan_.compile_seconds);
                                return request;
                              }};
  }
}

std::optional<v1::Trial> TrialPhase::Known(size_t index) {
  const search::Candidate& candidate = plan_.candidates->all[index];
  if (candidate.known.has_value() && (!plan_.retry_known || candidate.known->job() == job_.name)) {
    return candidate.known;
  }
  if (plan_.retry_known) return std::nullopt;
  // Another job may have tried it since this one began.
  absl::StatusOr<v1::Trial> trial =
      ReadFor(job_, [&] { return means_.code.store().FindTrial(KeyOf(candidate, *plan_.tuning_key)); });
  if (!trial.ok() || trial->name() == candidate.doubted) return std::nullopt;
  if (plan_.check_all && trial->verdict() == v1::VERDICT_SLOW) return std::nullopt;
  return *std::move(trial);
}

void TrialPhase::Reuse(size_t index, v1::Trial trial) {
  trial.clear_recipe();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    NoteLocked(index, trial);
  }
  Tell(index, trial);
  UpdateProgress(&trial, true);
}

void TrialPhase::Tell(size_t index, const v1::Trial& trial) {
  {
    const std::lock_guard<std::mutex> lock(strategy_mutex_);
    plan_.strategy->Tell(index, trial);
  }
  ahead_.Wake();
}

void TrialPhase::Compiled() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++compiles_;
  }
  UpdateProgress(nullptr, false);
}

absl::Status TrialPhase::Try(size_t index, const absl::StatusOr<CodePtr>& code, DeviceUse& use) {
  if (absl::Status status = recorder_.status(); !status.ok()) return status;
  const catalog::TuningKey& tuning_key = *plan_.tuning_key;
  const search::Candidate& candidate = plan_.candidates->all[index];
  v1::Trial trial = NewTrial(tuning_key, candidate.variant, job_.name);
  if (absl::IsCancelled(code.status()) || absl::IsUnavailable(code.status())) return code.status();
  if (!code.ok()) {
    trial.set_verdict(v1::VERDICT_LOST);
    trial.set_detail(absl::StrCat("compiling: ", code.status().message()));
    lost_ = code.status();
    return FinishUnrun(index, std::move(trial));
  }
  trial.set_compile_ms((*code)->cached ? 0 : (*code)->report.compile_ms);
  if (!(*code)->cached) {
    SetTimestamp((*code)->compile_begin, trial.mutable_cost()->mutable_compile_begin());
    trial.mutable_cost()->set_compile_worker((*code)->compile_worker);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (codes_.insert((*code)->report.compile_key).second) compiling_ += absl::Milliseconds(trial.compile_ms());
  }
  trial.set_artifact_sha256((*code)->report.sha256);
  if ((*code)->report.verdict != v1::VERDICT_OK) {
    trial.set_verdict((*code)->report.verdict);
    trial.set_detail(Cleaned((*code)->report.log, kMostDetail));
    return FinishUnrun(index, std::move(trial));
  }
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(candidate.variant, tuning_key.problem, tuning_key.device);
  if (!recipe.ok()) {
    trial.set_verdict(v1::VERDICT_INFEASIBLE);
    trial.set_detail(absl::StrCat("no launch recipe: ", recipe.status().message()));
    return FinishUnrun(index, std::move(trial));
  }
  *trial.mutable_recipe() = *std::move(recipe);
  std::optional<size_t> duplicate;
  if (ResolvedWithoutRun(**code, trial, duplicate)) return FinishUnrun(index, std::move(trial), duplicate);
  TrialClaims::Claim claim;
  std::optional<v1::Trial> known;
  if (absl::Status status = OnDevice(index, **code, trial, use, claim, known); !status.ok()) return status;
  if (!known.has_value()) return Finish(index, std::move(trial), std::nullopt, std::move(claim));
  Reuse(index, *std::move(known));
  return absl::OkStatus();
}

absl::Status TrialPhase::TakeClaim(size_t index, TrialClaims::Claim& claim, std::optional<v1::Trial>& known) {
  auto taken = means_.claims.Take(KeyOf(plan_.candidates->all[index], *plan_.tuning_key), job_.stop);
  if (!taken.has_value()) return absl::CancelledError("stopped while another job tried the variant");
  claim = *std::move(taken);
  known = Known(index);
  return absl::OkStatus();
}

absl::Status TrialPhase::FinishUnrun(size_t index, v1::Trial trial, std::optional<size_t> duplicate) {
  TrialClaims::Claim claim;
  std::optional<v1::Trial> known;
  if (absl::Status status = TakeClaim(index, claim, known); !status.ok()) return status;
  if (!known.has_value()) return Finish(index, std::move(trial), duplicate, std::move(claim));
  Reuse(index, *std::move(known));
  return absl::OkStatus();
}

bool TrialPhase::ResolvedWithoutRun(const Code& code, v1::Trial& trial, std::optional<size_t>& duplicate) {
  const v1::Device& device = plan_.tuning_key->device;
  *trial.mutable_resources() = catalog::ResourcesOf(code.report, trial.recipe());
  *trial.mutable_geometry() = space::GeometryOf(trial.recipe(), trial.resources(), device);
  const std::string impediment =
      catalog::InfeasibleReason(code.report, trial.resources(), trial.geometry(), trial.recipe(), device);
  if (!impediment.empty()) {
    trial.set_verdict(v1::VERDICT_INFEASIBLE);
    trial.set_detail(impediment);
    return true;
  }
  duplicate = FindDuplicate(trial);
  if (!duplicate.has_value()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const v1::Trial& first = outcomes_.at(*duplicate);
  trial.set_verdict(first.verdict());
  trial.set_detail(first.detail());
  *trial.mutable_accuracy() = first.accuracy();
  *trial.mutable_timing() = first.timing();
  if (!first.name().empty()) trial.set_identical_to(first.name());
  return true;
}

std::optional<size_t> TrialPhase::FindDuplicate(const v1::Trial& trial) {
  const std::string recipe = trial.recipe().SerializeAsString();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_artifact_.find(trial.artifact_sha256());
  if (it == by_artifact_.end()) return std::nullopt;
  for (size_t other : it->second) {
    const catalog::TuningKey& tuning_key = *plan_.tuning_key;
    absl::StatusOr<v1::LaunchRecipe> same =
        space::RecipeFor(plan_.candidates->all[other].variant, tuning_key.problem, tuning_key.device);
    if (same.ok() && same->SerializeAsString() == recipe) return other;
  }
  return std::nullopt;
}

absl::Status TrialPhase::OnDevice(size_t index, const Code& code, v1::Trial& trial, DeviceUse& use,
                                  TrialClaims::Claim& claim, std::optional<v1::Trial>& known) {
  worker::v1::TrialRequest request;
  request.set_most_seconds(plan_.trial_seconds);
  request.mutable_candidate()->set_artifact(code.artifact);
  *request.mutable_candidate()->mutable_recipe() = trial.recipe();
  request.mutable_candidate()->set_deterministic(plan_.candidates->all[index].variant.family->manifest.deterministic());
  request.set_policy(plan_.tuning_key->policy);
  if (absl::Status status = TimeAnchor(use); !status.ok()) return status;
  request.set_leader_us(anchor_.YardstickUs());
  request.set_leader_sm_clock_mhz(anchor_.sm_clock_mhz());
  request.set_check_all(plan_.check_all);
  for (int attempt = 0; attempt < kDeviceTries; ++attempt) {
    // Only whoever has the turn claims: nobody waits for a claim while its holder waits for the device.
    claim = TrialClaims::Claim();
    absl::Status claimed;
    absl::StatusOr<worker::v1::TrialResponse> response = use.Trial(request, [&] {
      claimed = TakeClaim(index, claim, known);
      return claimed.ok() && !known.has_value();
    });
    if (!claimed.ok() || known.has_value()) return claimed;
    if (response.ok()) {
      trial.mutable_cost()->set_wait_ms(absl::ToDoubleMilliseconds(waited_for_code_));
      trial.mutable_cost()->set_check_ms(response->check_ms());
      trial.mutable_cost()->set_time_ms(response->time_ms());
      trial.mutable_cost()->set_device_ms(response->device_ms());
      trial.set_verdict(response->verdict());
      trial.set_detail(Cleaned(response->detail(), kMostDetail));
      if (response->has_accuracy()) *trial.mutable_accuracy() = response->accuracy();
      if (response->has_timing()) *trial.mutable_timing() = response->timing();
      anchor_.Note(Timed(trial) ? trial.timing() : v1::Timing(), request.candidate());
      return absl::OkStatus();
    }
    // Stopped while waiting for the turn; or the device belongs to somebody else, and trying again cannot help.
    if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status())) return response.status();
    lost_ = response.status();
  }
  trial.set_verdict(v1::VERDICT_LOST);
  trial.set_detail(absl::StrCat("on the device: ", lost_.message()));
  return absl::OkStatus();
}

void TrialPhase::AnchorAtKnown() {
  std::optional<size_t> best;
  for (size_t i = 0; i < plan_.candidates->all.size(); ++i) {
    const std::optional<v1::Trial>& known = plan_.candidates->all[i].known;
    if (!known.has_value() || !Timed(*known) || known->timing().given_up()) continue;
    if (!best.has_value() || known->timing().median_us() < plan_.candidates->all[*best].known->timing().median_us()) {
      best = i;
    }
  }
  if (!best.has_value()) return;
  const search::Candidate& candidate = plan_.candidates->all[*best];
  const catalog::TuningKey& tuning_key = *plan_.tuning_key;
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(candidate.variant, tuning_key.problem, tuning_key.device);
  const absl::StatusOr<CodePtr> code = FindCode(means_.code.store(), candidate.spec.key, tuning_key.toolchain);
  if (!recipe.ok() || !code.ok() || (*code)->report.verdict != v1::VERDICT_OK) return;
  worker::v1::Candidate runs;
  runs.set_artifact((*code)->artifact);
  *runs.mutable_recipe() = *std::move(recipe);
  runs.set_deterministic(candidate.variant.family->manifest.deterministic());
  anchor_.Note(candidate.known->timing(), runs);
}

absl::Status TrialPhase::TimeAnchor(DeviceUse& use) {
  if (!std::exchange(anchored_, true)) AnchorAtKnown();
  const worker::v1::Candidate* const due = anchor_.Due();
  if (due == nullptr) return absl::OkStatus();
  worker::v1::TrialRequest request;
  *request.mutable_candidate() = *due;
  request.set_policy(plan_.tuning_key->policy);
  request.set_time_only(true);
  const absl::StatusOr<worker::v1::TrialResponse> response = use.Trial(request, [] { return true; });
  if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status())) return response.status();
  const bool timed = response.ok() && response->verdict() == v1::VERDICT_OK && response->timing().median_us() > 0;
  anchor_.Timed(timed ? std::make_optional(response->timing()) : std::nullopt);
  return absl::OkStatus();
}

absl::Status TrialPhase::Finish(size_t index, v1::Trial trial, std::optional<size_t> duplicate,
                                TrialClaims::Claim claim) {
  const bool lost = trial.verdict() == v1::VERDICT_LOST;
  SetTimestamp(absl::Now(), trial.mutable_finish_time());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++run_;
    v1::Trial outcome = trial;
    outcome.clear_recipe();
    NoteLocked(index, outcome);
    if (duplicate.has_value()) std::erase(by_artifact_[trial.artifact_sha256()], index);
  }
  Tell(index, trial);
  if (!trial.identical_to().empty()) duplicate.reset();
  recorder_.Add(index, std::move(trial), duplicate, std::move(claim));
  lost_in_a_row_ = lost ? lost_in_a_row_ + 1 : 0;
  if (lost_in_a_row_ < kMostLostInARow) return absl::OkStatus();
  return absl::Status(lost_.code(),
                      absl::StrCat(lost_in_a_row_, " trials in a row were lost, the last because: ", lost_.message()));
}

void TrialPhase::NoteLocked(size_t index, const v1::Trial& trial) {
  outcomes_[index] = trial;
  if (trial.verdict() == v1::VERDICT_LOST) return;
  if (Timed(trial) &&
      (!leader_.has_value() || trial.timing().median_us() < outcomes_.at(*leader_).timing().median_us())) {
    leader_ = index;
  }
  // INFEASIBLE says nothing of code: it was not run.
  if (trial.artifact_sha256().empty() || !trial.identical_to().empty()) return;
  if (trial.verdict() != v1::VERDICT_INFEASIBLE) by_artifact_[trial.artifact_sha256()].push_back(index);
}

void TrialPhase::Recorded(size_t index, const v1::Trial& trial) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    v1::Trial& outcome = outcomes_.at(index);
    outcome.set_name(trial.name());
    outcome.set_identical_to(trial.identical_to());
  }
  UpdateProgress(&trial, false);
}

void TrialPhase::UpdateProgress(const v1::Trial* trial, bool reused) {
  const absl::Duration budget = TimeLeftOfBudget();
  const std::lock_guard<std::mutex> lock(mutex_);
  job_.progress.Change([&](v1::OperationProgress& progress) {
    progress.set_compiles_done(compiles_);
    progress.set_compiles_total(std::max(progress.compiles_total(), compiles_));
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
    SetCost(plan_.cost_before, cost_, compile_ms(), progress);
    UpdateEtaLocked(budget, progress);
  });
}

absl::Duration TrialPhase::TimeLeftOfBudget() {
  const std::lock_guard<std::mutex> lock(strategy_mutex_);
  return std::max(plan_.strategy->TimeLeft(), absl::ZeroDuration());
}

void TrialPhase::UpdateEtaLocked(absl::Duration budget, v1::OperationProgress& progress) const {
  const int64_t known_left = std::max<int64_t>(0, known_ - progress.trials_reused());
  const int64_t trials_left = progress.trials_total() - progress.trials_done() - known_left;
  const auto codes = static_cast<int64_t>(codes_.size());
  const std::optional<absl::Duration> left =
      TimeLeft({run_, busy_, codes, compiling_, means_.code.pool().size()}, trials_left,
               progress.compiles_total() - std::max(codes, compiles_));
  if (!left.has_value()) return progress.clear_eta();
  SetDuration(std::min(*left, budget) + play_off_, progress.mutable_eta());
}

}  // namespace attune::trials
