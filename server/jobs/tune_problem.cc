#include "server/jobs/tune_problem.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/promotion/contest.h"
#include "server/search/strategy.h"
#include "server/trials/reference.h"
#include "server/trials/trial_phase.h"
#include "server/verify/footprint.h"

namespace attune::jobs {
namespace {

void BeginTrials(JobContext& context, const search::CandidateSet& candidates, const search::Strategy& strategy,
                 size_t first) {
  const int64_t total = static_cast<int64_t>(std::min(strategy.Total() + first, candidates.all.size()));
  std::set<std::string> keys;
  for (const search::Candidate& candidate : candidates.all) {
    if (!candidate.known.has_value()) keys.insert(candidate.spec.key);
  }
  context.operation.Update([&](v1::Operation& operation) {
    v1::OperationProgress& progress = *operation.mutable_progress();
    Restart(context, progress);
    progress.set_phase(v1::OperationProgress::PHASE_REFERENCE);
    progress.set_message(context.prefix + "compiling the reference kernel");
    progress.set_trials_total(total);
    progress.set_compiles_total(std::min(static_cast<int64_t>(keys.size()), total));
  });
}

// A budget may have ended before the totals that were announced.
void EndTrials(JobContext& context) {
  context.operation.Update([&context](v1::Operation& operation) {
    v1::OperationProgress& progress = *operation.mutable_progress();
    progress.set_trials_total(progress.trials_done());
    progress.set_compiles_total(progress.compiles_done());
    if (context.sweep == nullptr) progress.clear_eta();
  });
}

}  // namespace

absl::StatusOr<search::Subject> MakeSubject(const Workshop& shop, const trials::DeviceSlot& slot,
                                            const v1::Problem& problem, v1::Policy policy) {
  absl::StatusOr<Problem> plain = FromProto(problem);
  if (!plain.ok()) return plain.status();
  if (absl::Status fits = verify::CheckFits(*plain, slot.device(), verify::HostBytes()); !fits.ok()) return fits;
  absl::StatusOr<std::string> toolchain = shop.compiler->Toolchain(slot.device().backend());
  if (!toolchain.ok()) return toolchain.status();
  return search::Subject{*plain, ToText(*plain), slot.device(),
                         policy == v1::POLICY_UNSPECIFIED ? v1::POLICY_HOT : policy, *std::move(toolchain)};
}

absl::StatusOr<search::CandidateSet> CandidatesNow(const Workshop& shop, const TuneSpec& spec,
                                                   const space::Stopped& stopped) {
  absl::StatusOr<std::optional<v1::Incumbent>> incumbent = promotion::ServedNow(*shop.store, spec.subject);
  if (!incumbent.ok()) return incumbent.status();
  std::vector<space::Variant> extra;
  if (incumbent->has_value()) {
    absl::StatusOr<space::Variant> variant =
        promotion::TodaysVariant((*incumbent)->trial(), spec.subject, shop.families);
    if (variant.ok()) extra.push_back(*std::move(variant));
  }
  search::Choice choice;
  choice.random = spec.strategy.kind() == v1::Strategy::KIND_RANDOM;
  choice.max_trials = spec.strategy.max_trials();
  choice.seed = spec.strategy.seed() != 0 ? spec.strategy.seed() : spec.seed;
  return search::GatherCandidates(
      *shop.store,
      search::FamiliesFor(shop.families, spec.subject.device.backend(), family::v1::ROLE_SEARCH, spec.families), extra,
      spec.subject, choice, stopped);
}

int64_t CountUntried(const search::CandidateSet& candidates, const TuneSpec& spec) {
  v1::Strategy untimed = spec.strategy;
  untimed.clear_max_time();
  const std::unique_ptr<search::Strategy> strategy = search::MakeStrategy(
      untimed, candidates.all.size(), candidates.guesses, spec.seed, [] { return absl::ZeroDuration(); });
  int64_t untried = 0;
  while (const std::optional<size_t> index = strategy->Ask()) {
    if (!candidates.all[*index].known.has_value()) ++untried;
  }
  return untried;
}

absl::StatusOr<TuneOutcome> TuneProblem(JobContext& context, const TuneSpec& spec) {
  const search::Subject& subject = spec.subject;
  SetPhase(context, v1::OperationProgress::PHASE_ENUMERATE, absl::StrCat("variants of ", subject.problem_text));
  absl::StatusOr<search::CandidateSet> candidates = CandidatesNow(context.shop, spec, StoppedWith(context));
  if (!candidates.ok()) return candidates.status();
  const std::unique_ptr<search::Strategy> strategy =
      search::MakeStrategy(spec.strategy, candidates->all.size(), candidates->guesses, spec.seed, context.shop.clock);

  trials::TrialPhase::Plan plan;
  plan.subject = &subject;
  plan.candidates = &*candidates;
  plan.strategy = strategy.get();
  plan.retry_known = spec.retry_known;
  absl::StatusOr<std::optional<v1::Incumbent>> incumbent = promotion::ServedNow(*context.shop.store, subject);
  if (!incumbent.ok()) return incumbent.status();
  if (incumbent->has_value()) {
    // First, whatever the strategy asks: it takes part in the play-off, and a good leader makes racing short.
    const std::optional<size_t> index = candidates->Find((*incumbent)->trial().variant().text());
    if (index.has_value()) plan.first.push_back(*index);
  }
  BeginTrials(context, *candidates, *strategy, plan.first.size());
  trials::TrialPhase phase(context, std::move(plan));

  absl::StatusOr<worker::v1::PrepareRequest> prepare = trials::MakePrepareRequest(context, subject);
  if (!prepare.ok()) return prepare.status();
  trials::DeviceSession session(context.slot, context.priority, context.operation.stop_token(),
                                context.operation.waiter());
  session.Use(*std::move(prepare));
  SetPhase(context, v1::OperationProgress::PHASE_REFERENCE, "inputs and reference results");
  if (absl::Status status = session.Prepare(); !status.ok()) return status;
  absl::StatusOr<double> floor = trials::MeasureFloor(context, subject, session);
  if (!floor.ok()) return floor.status();

  SetPhase(context, v1::OperationProgress::PHASE_TRIALS, "compiling ahead, checking, timing");
  if (absl::Status status = phase.Run(session); !status.ok()) return status;
  EndTrials(context);

  absl::StatusOr<promotion::ContestResult> contest =
      promotion::HoldContest(context, subject, promotion::ContestRules(), session);
  if (!contest.ok()) return contest.status();

  TuneOutcome outcome;
  outcome.trials = phase.run();
  outcome.compiles = phase.compiles();
  v1::TuneResult& result = outcome.result;
  if (contest->served.has_value()) *result.mutable_incumbent() = *std::move(contest->served);
  if (contest->winner.has_value()) *result.mutable_winner() = *std::move(contest->winner);
  result.set_promoted(contest->promoted);
  result.set_decision(contest->why);
  for (v1::Trial& trial : contest->play_off) *result.add_play_off() = std::move(trial);
  *result.mutable_removed() = {candidates->removed.begin(), candidates->removed.end()};
  result.set_floor_us(*floor);
  return outcome;
}

}  // namespace attune::jobs
