#include "server/trials/trial_phase.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"
#include "server/base/proto_time.h"
#include "server/catalog/code_rejection.h"
#include "server/catalog/host.h"
#include "server/trials/pace.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"

namespace attune::trials {
namespace {

constexpr int kMostLostInARow = 3;  // then the infrastructure itself is broken, or the card is lost

CompileAhead::Options AheadOptions(const TrialPhase::Means& means, const Job& job, const TrialPhase::Plan& plan) {
  return {&means.code.store(),
          &means.code.pool(),
          &job,
          plan.tuning_key->toolchain,
          means.compile_ahead * static_cast<int>(1 + plan.sisters.size()),
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

absl::Status LostInARow(int trials, const absl::Status& last) {
  return {last.code(), absl::StrCat(trials, " trials in a row were lost, the last because: ", last.message())};
}

std::vector<std::string> CardsOf(const TrialPhase::Plan& plan) {
  std::vector<std::string> ids = {plan.tuning_key->device.id()};
  for (const Sister& sister : plan.sisters) ids.push_back(sister.tuning_key.device.id());
  return ids;
}

}  // namespace

TrialPhase::TrialPhase(const Means& means, const Job& job, const Plan& plan)
    : means_(means),
      job_(job),
      plan_(plan),
      card_shared_{means.code, *plan_.candidates, plan_.trial_seconds, plan_.check_all, offer_},
      shares_(CardsOf(plan_)),
      progress_(job, shares_, {plan_.cost_before, CountKnown(plan_), means.code.pool().size()}),
      recorder_(&means.code.store(), job, [this](size_t index, const v1::Trial& trial) { Recorded(index, trial); }),
      ahead_(
          AheadOptions(means, job, plan_), [this](bool room) { return Next(room); }, [this] { Compiled(); }),
      sister_cards_(job, {[this](size_t sister, DeviceUse& use) { return WorkOnSister(sister, use); },
                          [this](size_t sister, const absl::Status& why) { Lose(sister + 1, why); },
                          [this](size_t sister) { return shares_.HasFor(sister + 1); }, [this] { return Left(); }}) {}

TrialPhase::~TrialPhase() { ahead_.Stop(); }

void TrialPhase::Join(const worker::v1::PrepareRequest& prepare) {
  joined_ = true;
  sister_cards_.Join(plan_.sisters, prepare);
}

absl::Status TrialPhase::Run(DeviceUse& use, const std::function<void()>& give_back) {
  const std::stop_callback stopper(job_.stop, [this] { ahead_.Stop(); });
  CardTrials first(card_shared_, *plan_.tuning_key, use);
  const Before before = BeforeOf(use, 0);
  absl::Status status = Work(first, 0, before);
  if (!status.ok() && !shares_.of(0).lost.ok()) {
    if (shares_.several() && give_back) give_back();
    return RunOnSisters();
  }
  ahead_.Stop();
  sister_cards_.End();
  // What one of them had in hand may have come back.
  if (status.ok() && shares_.HasFor(0)) status = Work(first, 0, before);
  if (!shares_.of(0).lost.ok() && NextToDecide() != nullptr) {
    if (give_back) give_back();
    status = absl::OkStatus();  // for RunLeft
  }
  return End(status);
}

absl::Status TrialPhase::RunOnSisters(const absl::Status& why) {
  const std::stop_callback stopper(job_.stop, [this] { ahead_.Stop(); });
  Lose(0, why);
  return RunOnSisters();
}

absl::Status TrialPhase::RunOnSisters() {
  sister_cards_.AwaitDone();
  ahead_.Stop();
  sister_cards_.End();
  return End(NextToDecide() == nullptr ? shares_.of(0).lost : absl::OkStatus());
}

absl::Status TrialPhase::RunLeft(const Sister& sister, DeviceUse& use) {
  const size_t number = 1 + static_cast<size_t>(&sister - plan_.sisters.data());
  if (!shares_.HasFor(number)) return absl::OkStatus();
  CardTrials card(card_shared_, sister.tuning_key, use);
  return Record(Work(card, number, BeforeOf(use, number)));
}

bool TrialPhase::Left() {
  if (shares_.HasAny()) return true;
  if (ahead_.over()) return false;
  const std::lock_guard<std::mutex> lock(strategy_mutex_);
  return plan_.strategy->TimeLeft() > absl::ZeroDuration();
}

absl::Status TrialPhase::End(absl::Status status) {
  ahead_.End();  // its thread may be thinking
  if (!plan_.sisters.empty()) {
    const v1::OperationCost cost = shares_.CostFrom(1);
    job_.progress.AddDeviceTime(
        absl::Milliseconds(cost.prepare_ms() + cost.check_ms() + cost.time_ms() + cost.wait_ms()));
  }
  if (status.ok() && !failed_.ok()) status = failed_;
  return Record(status);
}

absl::Status TrialPhase::Record(const absl::Status& status) {
  if (status.ok()) Think();  // what the strategy claims in the end is from every batch that has ended
  absl::Status recorded = recorder_.Flush();
  if (!status.ok()) return status;
  if (!recorded.ok()) return recorded;
  if (job_.stop.stop_requested()) return absl::CancelledError("stopped");
  return absl::OkStatus();
}

absl::Status TrialPhase::Work(CardTrials& card, size_t number, const Before& before) {
  shares_.Begin(number);
  if (shares_.several()) UpdateProgress(nullptr, false);
  absl::Status status;
  while (status.ok() && !job_.stop.stop_requested()) {
    const absl::Duration idle = means_.clock();
    const std::optional<CompileAhead::Ready> ready = Take(number);
    if (!ready.has_value()) break;
    status = Try(*ready, means_.clock() - idle, card, number);
    SetCostOf(card, number, before);
    if (plan_.plays_off) progress_.SetPlayOff(PlayOffTime(card.use().prepare_time()));
    const std::lock_guard<std::mutex> lock(mutex_);
    anchor_moved_ = std::max(anchor_moved_, card.anchor().moved());
  }
  SetCostOf(card, number, before);  // a device may have been prepared for nothing
  shares_.End(number);
  if (!shares_.several()) return status;
  UpdateProgress(nullptr, false);
  // What another was to take before who lost it is anybody's now.
  ahead_.Wake();
  sister_cards_.Wake();
  return status;
}

TrialPhase::Before TrialPhase::BeforeOf(const DeviceUse& use, size_t number) const {
  const CardShares::Share share = shares_.of(number);
  return {share.busy - use.busy(), share.cost};
}

void TrialPhase::SetCostOf(CardTrials& card, size_t number, const Before& before) {
  shares_.SetCost(number, before.busy + card.use().busy(), SumOf(before.cost, card.use().cost()));
}

absl::Status TrialPhase::WorkOnSister(size_t sister, DeviceUse& use) {
  CardTrials card(card_shared_, plan_.sisters[sister].tuning_key, use);
  absl::Status status = Work(card, sister + 1, BeforeOf(use, sister + 1));
  if (status.ok() || absl::IsCancelled(status) || !shares_.of(sister + 1).lost.ok()) return status;
  // What is the job's and no card's ends it on all of them.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.ok()) failed_ = status;
  ahead_.Stop();
  return status;
}

void TrialPhase::Lose(size_t card, const absl::Status& why) {
  shares_.Lose(card, why);
  if (!shares_.several()) return;
  LogWarning("card lost to a job", {{"job", job_.name}, {"device", shares_.of(card).id}, {"error", why.message()}});
  UpdateProgress(nullptr, false);
}

std::optional<CompileAhead::Ready> TrialPhase::Take(size_t card) {
  if (!shares_.several()) return ahead_.Take([this](const std::vector<size_t>& ready) { return Choose(ready); });
  while (true) {
    if (std::optional<CompileAhead::Ready> back = shares_.TakeFor(card)) return back;
    std::optional<CompileAhead::Ready> ready = ahead_.Take([&](const std::vector<size_t>& candidates) {
      return shares_.HasFor(card) ? search::Choice::Done() : Choose(candidates);
    });
    if (ready.has_value()) return ready;
    if (shares_.HasFor(card)) continue;
    ahead_.Wake();  // the others' choices may have ended, too
    return std::nullopt;
  }
}

search::Choice TrialPhase::Choose(const std::vector<size_t>& ready) {
  const std::lock_guard<std::mutex> lock(strategy_mutex_);
  return plan_.strategy->Choose(ready);
}

const Sister* TrialPhase::NextToDecide() const {
  const std::vector<CardShares::Share> shares = shares_.all();
  size_t next = 0;
  for (size_t i = 1; i < shares.size(); ++i) {
    if (!shares[i].lost.ok()) continue;
    if (next == 0 || shares[i].trials > shares[next].trials) next = i;
  }
  return next == 0 ? nullptr : &plan_.sisters[next - 1];
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
    Note(index, known);
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
    if (std::optional<v1::Trial> known = KnownOfAnyCard(*index); known.has_value()) {
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

std::optional<v1::Trial> TrialPhase::KnownOfAnyCard(size_t index) {
  std::optional<v1::Trial> known = Known(index, *plan_.tuning_key);
  for (const Sister& sister : plan_.sisters) {
    if (!known.has_value()) known = Known(index, sister.tuning_key);
  }
  return known;
}

std::optional<v1::Trial> TrialPhase::Known(size_t index, const catalog::TuningKey& tuning_key) {
  const search::Candidate& candidate = plan_.candidates->all[index];
  if (candidate.known.has_value() && (!plan_.retry_known || candidate.known->job() == job_.name)) {
    return candidate.known;
  }
  if (plan_.retry_known) return std::nullopt;
  // Another job may have tried it since this one began.
  absl::StatusOr<v1::Trial> trial =
      ReadFor(job_, [&] { return means_.code.store().FindTrial(KeyOf(candidate, tuning_key)); });
  if (!trial.ok()) return std::nullopt;
  const std::vector<std::string>& doubted = candidate.doubted;
  if (std::find(doubted.begin(), doubted.end(), trial->name()) != doubted.end()) return std::nullopt;
  if (plan_.check_all && trial->verdict() == v1::VERDICT_SLOW) return std::nullopt;
  return *std::move(trial);
}

void TrialPhase::Reuse(size_t index, v1::Trial trial) {
  trial.clear_recipe();
  Note(index, trial);
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
  progress_.CountCompile();
  UpdateProgress(nullptr, false);
}

absl::Status TrialPhase::Try(const CompileAhead::Ready& ready, absl::Duration waited, CardTrials& card, size_t number) {
  if (absl::Status status = recorder_.status(); !status.ok()) return status;
  const size_t index = ready.candidate;
  const absl::StatusOr<CodePtr>& code = ready.code;
  const catalog::TuningKey& tuning_key = card.tuning_key();
  const search::Candidate& candidate = plan_.candidates->all[index];
  v1::Trial trial = NewTrial(tuning_key, candidate.variant, job_.name);
  if (absl::IsCancelled(code.status()) || absl::IsUnavailable(code.status())) return code.status();
  if (!code.ok()) {
    trial.set_verdict(v1::VERDICT_LOST);
    trial.set_detail(absl::StrCat("compiling: ", code.status().message()));
    if (absl::Status status = FinishUnrun(index, std::move(trial), number); !status.ok()) return status;
    const int in_a_row = ++compiles_lost_;
    return in_a_row < kMostLostInARow ? absl::OkStatus() : LostInARow(in_a_row, code.status());
  }
  compiles_lost_ = 0;
  trial.set_compile_ms((*code)->cached ? 0 : (*code)->report.compile_ms);
  if (!(*code)->cached) {
    SetTimestamp((*code)->compile_begin, trial.mutable_cost()->mutable_compile_begin());
    trial.mutable_cost()->set_compile_worker((*code)->compile_worker);
  }
  progress_.AddCode((*code)->report.compile_key, absl::Milliseconds(trial.compile_ms()));
  trial.set_artifact_sha256((*code)->report.sha256);
  if ((*code)->report.verdict != v1::VERDICT_OK) {
    trial.set_verdict((*code)->report.verdict);
    trial.set_detail(Cleaned((*code)->report.log, kMostDetail));
    return FinishUnrun(index, std::move(trial), number);
  }
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(candidate.variant, tuning_key.problem, tuning_key.device);
  if (!recipe.ok()) {
    trial.set_verdict(v1::VERDICT_INFEASIBLE);
    trial.set_detail(absl::StrCat("no launch recipe: ", recipe.status().message()));
    return FinishUnrun(index, std::move(trial), number);
  }
  *trial.mutable_recipe() = *std::move(recipe);
  std::optional<size_t> duplicate;
  if (ResolvedWithoutRun(**code, tuning_key, trial, duplicate)) {
    return FinishUnrun(index, std::move(trial), number, duplicate);
  }
  Claimed claim(*this, index, tuning_key);
  const absl::Status ran = card.Try(candidate, **code, waited, claim, trial);
  if (!claim.status().ok()) return claim.status();
  if (!ran.ok()) {
    if (shares_.several() && !job_.stop.stop_requested()) {
      shares_.HandBack(ready);
      ahead_.Wake();
      sister_cards_.Wake();
    }
    if (absl::IsFailedPrecondition(ran)) Lose(number, ran);
    return ran;
  }
  if (claim.known().has_value()) {
    Reuse(index, *std::move(claim.known()));
    return absl::OkStatus();
  }
  if (trial.verdict() == v1::VERDICT_LOST && shares_.HandBackLost(number, ready)) {
    ahead_.Wake();
    sister_cards_.Wake();
    return CountLost(true, card, number);
  }
  const bool lost = trial.verdict() == v1::VERDICT_LOST;
  Finish(index, std::move(trial), std::nullopt, claim.Take(), number);
  return CountLost(lost, card, number);
}

bool TrialPhase::Claimed::Claim() {
  auto taken = phase_.means_.claims.Take(KeyOf(phase_.plan_.candidates->all[index_], tuning_key_), phase_.job_.stop);
  if (!taken.has_value()) {
    status_ = absl::CancelledError("stopped while another job tried the variant");
    return false;
  }
  claim_ = *std::move(taken);
  known_ = phase_.Known(index_, tuning_key_);
  return !known_.has_value();
}

absl::Status TrialPhase::FinishUnrun(size_t index, v1::Trial trial, size_t number, std::optional<size_t> duplicate) {
  Claimed claim(*this, index, KeyOfCard(trial));
  claim.Claim();
  if (!claim.status().ok()) return claim.status();
  if (claim.known().has_value()) {
    Reuse(index, *std::move(claim.known()));
  } else {
    Finish(index, std::move(trial), duplicate, claim.Take(), number);
  }
  return absl::OkStatus();
}

const catalog::TuningKey& TrialPhase::KeyOfCard(const v1::Trial& trial) const {
  for (const Sister& sister : plan_.sisters) {
    if (catalog::IsOf(catalog::InstanceOf(trial), sister.tuning_key.device)) return sister.tuning_key;
  }
  return *plan_.tuning_key;
}

bool TrialPhase::ResolvedWithoutRun(const Code& code, const catalog::TuningKey& tuning_key, v1::Trial& trial,
                                    std::optional<size_t>& duplicate) {
  const v1::Device& device = tuning_key.device;
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
  const bool of_card = first.has_timing() || first.verdict() == v1::VERDICT_SLOW ||
                       first.verdict() == v1::VERDICT_UNSTABLE;  // all others are of the code
  if (of_card && shares_.several()) {
    trial.set_device_id(first.device_id());
    trial.set_device_uuid(first.device_uuid());
  }
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

void TrialPhase::Finish(size_t index, v1::Trial trial, std::optional<size_t> duplicate, TrialClaims::Claim claim,
                        size_t number) {
  SetTimestamp(absl::Now(), trial.mutable_finish_time());
  v1::Trial outcome = trial;
  outcome.clear_recipe();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    outcomes_[index] = outcome;
  }
  progress_.CountRun();
  shares_.CountTrial(number);
  Tell(index, trial);
  if (!trial.identical_to().empty()) duplicate.reset();
  const bool runs_anew = !duplicate.has_value();
  recorder_.Add(index, std::move(trial), duplicate, std::move(claim));
  if (runs_anew) NoteCode(index, outcome);  // what shares its result is recorded after it
}

absl::Status TrialPhase::CountLost(bool lost, CardTrials& card, size_t number) {
  const int in_a_row = card.CountLost(lost);
  if (in_a_row < kMostLostInARow) return absl::OkStatus();
  absl::Status why = LostInARow(in_a_row, card.why_lost());
  Lose(number, why);
  return why;
}

void TrialPhase::NoteCode(size_t index, const v1::Trial& trial) {
  // INFEASIBLE says nothing of code: it was not run.
  if (trial.artifact_sha256().empty() || !trial.identical_to().empty()) return;
  if (trial.verdict() == v1::VERDICT_INFEASIBLE || trial.verdict() == v1::VERDICT_LOST) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  by_artifact_[trial.artifact_sha256()].push_back(index);
}

void TrialPhase::Note(size_t index, const v1::Trial& trial) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    outcomes_[index] = trial;
  }
  NoteCode(index, trial);
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
  absl::Duration budget;
  {
    const std::lock_guard<std::mutex> lock(strategy_mutex_);
    budget = std::max(plan_.strategy->TimeLeft(), absl::ZeroDuration());
  }
  progress_.Update(trial, reused, budget);
}

}  // namespace attune::trials
