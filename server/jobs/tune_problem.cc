#include "server/jobs/tune_problem.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/jobs/sisters_best.h"
#include "server/search/learning_field.h"
#include "server/search/strategy.h"
#include "server/trials/store_wait.h"

namespace attune::jobs {
namespace {

constexpr int kMostRead = 32;  // trials of a problem that seeds come from: cards and sessions repeat their variants

void BeginTrials(const search::CandidateSet& candidates, const search::Strategy& strategy, trials::Progress& progress) {
  const auto total = static_cast<int64_t>(strategy.Total());
  std::set<std::string> keys;
  for (const search::Candidate& candidate : candidates.all) {
    if (!candidate.known.has_value()) keys.insert(candidate.spec.key);
  }
  progress.Change([&](v1::OperationProgress& now) {
    v1::OperationProgress fresh;
    fresh.set_waits_for(now.waits_for());
    fresh.set_waits_for_title(now.waits_for_title());
    fresh.set_queue_position(now.queue_position());
    *fresh.mutable_phases() = now.phases();
    now = std::move(fresh);
    now.set_phase(v1::OperationProgress::PHASE_REFERENCE);
    now.set_trials_total(total);
    now.set_compiles_total(std::min(static_cast<int64_t>(keys.size()), total));
  });
}

// A budget may have ended before the totals that were announced.
void EndTrials(trials::Progress& progress) {
  progress.Change([](v1::OperationProgress& now) {
    now.set_trials_total(now.trials_done());
    now.set_compiles_total(now.compiles_done());
    now.clear_eta();
  });
}

// Whether a search begins with what near problems are served: one that learns, and was not told where to look.
bool BeginsNearby(const search::SearchSpec& spec) {
  return search::Learns(spec.strategy.kind()) && spec.seeds.empty() && spec.required.empty() &&
         spec.selection.where.empty();
}

void FillResult(promotion::ContestResult contest, v1::TuneResult& result) {
  if (contest.served.has_value()) *result.mutable_incumbent() = *std::move(contest.served);
  if (contest.winner.has_value()) *result.mutable_winner() = *std::move(contest.winner);
  result.set_promoted(contest.promoted);
  result.set_decision(contest.why);
  for (v1::Trial& trial : contest.play_off) *result.add_play_off() = std::move(trial);
}

}  // namespace

std::vector<space::Variant> ProblemTuner::SeedsFor(const catalog::TuningKey& tuning_key) const {
  return SeedsFor(tuning_key, ModelFor(tuning_key).get());
}

std::vector<space::Variant> ProblemTuner::SeedsFor(const catalog::TuningKey& tuning_key,
                                                   const forecast::ClassModel* model) const {
  std::optional<space::Variant> expected;
  if (model != nullptr) {
    std::vector<space::Variant> ranked = model->Ranked(tuning_key.problem);
    if (!ranked.empty()) expected = std::move(ranked.front());
  }
  return search::SeedsOf(
      options_.results.Nearby(tuning_key.problem, tuning_key.device, tuning_key.policy, search::kMostSeeds),
      std::move(expected));
}

std::shared_ptr<const forecast::ClassModel> ProblemTuner::ModelFor(const catalog::TuningKey& tuning_key) const {
  if (options_.models == nullptr) return nullptr;
  std::shared_ptr<const forecast::ClassModel> model = options_.models->Model(tuning_key.device, tuning_key.policy);
  return model != nullptr && model->Covers(tuning_key.problem) ? std::move(model) : nullptr;
}

absl::StatusOr<std::vector<space::Variant>> ProblemTuner::SeedsFrom(const std::string& problem_text,
                                                                    const catalog::TuningKey& tuning_key) const {
  v1::TrialFilter filter;
  filter.set_problem(problem_text);
  filter.set_device_class(tuning_key.device.fingerprint());
  filter.set_policy(tuning_key.policy);
  filter.add_verdicts(v1::VERDICT_OK);
  const auto fastest = options_.means.code.store().ListTrials(filter, v1::ListTrialsRequest::ORDER_FASTEST, kMostRead,
                                                              /*page_token=*/"");
  if (!fastest.ok()) return fastest.status();
  if (fastest->items.empty()) {
    return absl::NotFoundError(absl::StrCat("'", problem_text, "' has no trial that is OK on ", tuning_key.device.id(),
                                            "'s class under ", Word(tuning_key.policy)));
  }
  const absl::StatusOr<std::optional<v1::Incumbent>> served =
      options_.results.Served({problem_text, tuning_key.device.fingerprint(), tuning_key.policy});
  if (!served.ok()) return served.status();
  std::vector<std::string> texts;
  if (served->has_value()) texts.push_back((*served)->trial().variant().text());
  for (const v1::Trial& trial : fastest->items) texts.push_back(trial.variant().text());
  return FeasibleHere(texts, tuning_key);
}

// The first search::kMostSeeds of different variants that today's families have and that are feasible.
std::vector<space::Variant> ProblemTuner::FeasibleHere(const std::vector<std::string>& texts,
                                                       const catalog::TuningKey& tuning_key) const {
  std::vector<space::Variant> seeds;
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    if (seeds.size() == search::kMostSeeds) break;
    absl::StatusOr<space::Variant> variant = space::ParseVariant(text, options_.families);
    if (!variant.ok() || !seen.insert(variant->ToText()).second) continue;
    if (space::Feasible(*variant, tuning_key.problem, tuning_key.device).ok()) seeds.push_back(*std::move(variant));
  }
  return seeds;
}

absl::StatusOr<search::Field> ProblemTuner::FieldOf(const search::SearchSpec& spec,
                                                    const search::CandidateSet& candidates,
                                                    const forecast::ClassModel* model, const trials::Job& job) const {
  if (!search::Learns(spec.strategy.kind())) return candidates.ToField();
  absl::StatusOr<search::Field> field = trials::ReadFor(job, [&] {
    return search::LearningField(candidates, spec, job.name, options_.families, catalog::ShippedPriors(),
                                 options_.means.code.store());
  });
  if (!field.ok()) return field;
  if (model != nullptr) {
    std::vector<space::Variant> variants;
    for (const search::Candidate& candidate : candidates.all) variants.push_back(candidate.variant);
    field->expected = model->Expect(spec.tuning_key.problem, variants);
  }
  return field;
}

// Prepared, its floor measured; `joins` may be null, otherwise its sisters join once it is the job's turn here.
absl::StatusOr<std::unique_ptr<trials::DeviceUse>> ProblemTuner::TakeCard(trials::DeviceSlot& slot,
                                                                          const catalog::TuningKey& tuning_key,
                                                                          const trials::Job& job,
                                                                          trials::TrialPhase* joins,
                                                                          double& floor_us) const {
  std::function<void(const worker::v1::PrepareRequest&)> at_turn;
  if (joins != nullptr) at_turn = [joins](const worker::v1::PrepareRequest& prepare) { joins->Join(prepare); };
  auto use = trials::TakeDevice(slot, tuning_key, options_.families, options_.means.code, job,
                                trials::InputSeed(tuning_key), at_turn);
  if (!use.ok()) return use.status();
  const absl::StatusOr<double> floor =
      trials::MeasureFloor(tuning_key, options_.families, options_.means.code, job, **use);
  if (!floor.ok()) return floor.status();
  floor_us = *floor;
  return use;
}

absl::StatusOr<TuneOutcome> ProblemTuner::Tune(search::SearchSpec spec, trials::DeviceSlot& slot,
                                               const trials::Job& job, const promotion::ContestRules& rules,
                                               const std::vector<trials::Sister>& sisters) const {
  for (const trials::Sister& sister : sisters) spec.sisters.push_back(sister.tuning_key);
  if (absl::Status open = trials::OpenDevice(slot, job); !open.ok()) return open;
  // Now, that a daemon which has just started may have one.
  std::shared_ptr<const forecast::ClassModel> model =
      search::Learns(spec.strategy.kind()) ? ModelFor(spec.tuning_key) : nullptr;
  if (BeginsNearby(spec)) spec.seeds = SeedsFor(spec.tuning_key, model.get());
  const trials::TrialPhase::Means& means = options_.means;
  const catalog::TuningKey& tuning_key = spec.tuning_key;
  job.progress.SetPhase(v1::OperationProgress::PHASE_ENUMERATE, absl::StrCat("variants of ", tuning_key.problem_text));
  const absl::StatusOr<std::optional<v1::Incumbent>> incumbent =
      trials::ReadFor(job, [&] { return options_.results.Served(catalog::KeyOf(tuning_key)); });
  if (!incumbent.ok()) return incumbent.status();
  const absl::StatusOr<search::CandidateSet> candidates = trials::ReadFor(job, [&] {
    return search::CandidatesNow(spec, *incumbent, options_.families, means.code.store(), trials::StoppedWith(job));
  });
  if (!candidates.ok()) return candidates.status();
  absl::StatusOr<search::Field> field = FieldOf(spec, *candidates, model.get(), job);
  if (!field.ok()) return field.status();
  model.reset();  // some tens of megabytes, which the search has no use for
  field->cards = spec.sisters.size() + 1;
  field->compilers = static_cast<size_t>(means.code.pool().size());
  const std::unique_ptr<search::Strategy> strategy =
      search::MakeStrategy(spec.strategy, *std::move(field), spec.seed, means.clock);

  trials::TrialPhase::Plan plan;
  plan.tuning_key = &tuning_key;
  plan.candidates = &*candidates;
  plan.strategy = strategy.get();
  plan.retry_known = spec.retry_known;
  plan.check_all = spec.check_all;
  plan.plays_off = true;
  plan.sisters = sisters;
  BeginTrials(*candidates, *strategy, job.progress);
  trials::TrialPhase phase(means, job, plan);
  double floor_us = 0;
  auto use = TakeCard(slot, tuning_key, job, sisters.empty() ? nullptr : &phase, floor_us);
  if (!use.ok() && (!phase.joined() || absl::IsCancelled(use.status()))) return use.status();
  job.progress.SetPhase(v1::OperationProgress::PHASE_TRIALS, "compiling ahead, checking, timing");
  // A card that is lost is given back: nobody holds it while another card is waited for.
  const auto give_back = [&] { use->reset(); };
  const absl::Status ran = use.ok() ? phase.Run(**use, give_back) : phase.RunOnSisters(use.status());
  if (!ran.ok()) return ran;

  // One card decides: the first, or where that is lost another.
  const catalog::TuningKey* deciding = &tuning_key;
  v1::OperationCost before = phase.shares().CostFrom(1);
  if (const trials::Sister* next = phase.NextToDecide(); !phase.shares().of(0).lost.ok() && next != nullptr) {
    before = phase.shares().CostFrom(0);
    deciding = &next->tuning_key;
    use = TakeCard(*next->slot, *deciding, job, nullptr, floor_us);
    if (!use.ok()) return use.status();
    if (const absl::Status left = phase.RunLeft(*next, **use); !left.ok()) return left;
  }
  EndTrials(job.progress);
  int64_t tried_again = 0;
  if (!sisters.empty()) {
    v1::OperationCost others = before;
    others.set_compile_ms(phase.compile_ms());
    const promotion::FieldRules plays_off = options_.contests.FieldOf(rules);
    const absl::StatusOr<int64_t> tried = TrySistersBest(means, *candidates, phase.trials(), spec, *deciding,
                                                         {plays_off.size, plays_off.near}, others, job, **use);
    if (!tried.ok()) return tried.status();
    tried_again = *tried;
  }

  promotion::ContestRules with_claim = rules;
  with_claim.claim = strategy->Claim();
  absl::StatusOr<promotion::ContestResult> contest = options_.contests.Hold(*deciding, with_claim, job, **use);
  if (!contest.ok()) return contest.status();
  contest->why += LostCards(phase);
  job.progress.Change(
      [&](v1::OperationProgress& progress) { trials::SetCost(before, (*use)->cost(), phase.compile_ms(), progress); });
  TuneOutcome outcome;
  outcome.trials = phase.run() + tried_again;
  outcome.compiles = phase.compiles();
  FillResult(*std::move(contest), outcome.result);
  *outcome.result.mutable_removed() = {candidates->removed.begin(), candidates->removed.end()};
  outcome.result.set_floor_us(floor_us);
  outcome.result.set_anchor_moved(phase.anchor_moved());
  if (with_claim.claim.has_value()) *outcome.result.mutable_claim() = *with_claim.claim;
  return outcome;
}

}  // namespace attune::jobs
