#include "server/sweep/sweep_problem.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/attune/objective.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/base/seed.h"
#include "server/catalog/host.h"
#include "server/catalog/served_timing.h"
#include "server/promotion/alternatives.h"
#include "server/promotion/play_off.h"
#include "server/promotion/record_retiming.h"
#include "server/sweep/sweep_outcome.h"
#include "server/sweep/sweep_plan.h"
#include "server/trials/reference.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"

namespace attune::sweep {
namespace {

using Row = v1::SweepReport::Row;

// One problem's way to its row.
class SweepProblem {
 public:
  SweepProblem(const SweepMeans& means, const v1::SweepPlan& plan, search::SearchSpec spec, trials::DeviceSlot& slot,
               const trials::Job& job)
      : means_(means), plan_(plan), spec_(std::move(spec)), slot_(slot), job_(job) {
    row_.set_problem(spec_.tuning_key.problem_text);
  }

  absl::StatusOr<Row> Run() {
    absl::StatusOr<std::optional<v1::Incumbent>> before =
        trials::ReadFor(job_, [this] { return means_.results.Served(catalog::KeyOf(spec_.tuning_key)); });
    if (!before.ok()) return before.status();
    if (!before->has_value()) return TuneNew();
    before_ = **before;
    absl::StatusOr<search::CandidateSet> candidates = trials::ReadFor(job_, [&] {
      return search::CandidatesNow(spec_, *before, means_.host.families, store(), trials::StoppedWith(job_));
    });
    if (!candidates.ok()) return candidates.status();
    const std::optional<size_t> index = candidates->Find(before_.trial().variant().text());
    const bool changed =
        !index.has_value() ||
        !catalog::SameDependencies(before_.trial().dependencies(),
                                   catalog::DependenciesOf(*candidates->all[*index].variant.family, spec_.tuning_key));
    before_here_ = TimedHere(index.has_value() ? candidates->all[*index].known : std::nullopt);
    if (!before_here_.has_value()) {
      return TuneNew(v1::SweepReport::OUTCOME_MOVED,
                     absl::StrFormat("%s timed it so far, at %.4g us; later nights compare with this card's time",
                                     before_.device_id(), catalog::ServedTiming(before_).median_us()));
    }
    row_.set_before_us(before_here_->median_us());
    const int64_t untried = search::CountUntried(*candidates, spec_, *before);
    if (changed || untried > 0) return TuneAgain(changed ? "sources, toolchain or driver changed" : "new variants");
    if (LacksObjective(plan_, before_)) return TuneAgain("its energy was never measured");
    const search::Candidate& served = candidates->all[*index];
    absl::Status status = Judge({served, served.known.value_or(before_.trial())}, std::nullopt);
    if (!status.ok()) return status;
    row_.set_detail(judged_);
    if (row_.outcome() == v1::SweepReport::OUTCOME_FASTER) status = KeepFaster(before_);
    if (!status.ok()) return status;
    return std::move(row_);
  }

 private:
  // What the incumbent took on this card, given what is `known` of it here; nullopt when it has never been timed here.
  std::optional<v1::Timing> TimedHere(const std::optional<v1::Trial>& known) const {
    if (TimedByThisCard(before_)) return catalog::ServedTiming(before_);
    if (known.has_value() && trials::Timed(*known)) return known->timing();
    return std::nullopt;
  }
  bool TimedByThisCard(const v1::Incumbent& served) const {
    return catalog::IsOf(catalog::InstanceOf(served.trial()), spec_.tuning_key.device);
  }

  absl::StatusOr<Row> TuneNew(v1::SweepReport::Outcome found = v1::SweepReport::OUTCOME_NEW,
                              absl::string_view reason = "") {
    absl::StatusOr<jobs::TuneOutcome> outcome = Tune();
    if (!outcome.ok()) return outcome.status();
    row_.set_outcome(outcome->result.has_incumbent() ? found : v1::SweepReport::OUTCOME_FAILED);
    row_.set_detail(absl::StrCat(reason, reason.empty() ? "" : "; ", outcome->result.decision()));
    return std::move(row_);
  }

  absl::StatusOr<Row> TuneAgain(absl::string_view reason) {
    absl::StatusOr<jobs::TuneOutcome> outcome = Tune();
    if (!outcome.ok()) return outcome.status();
    if (!outcome->result.has_winner()) {
      row_.set_outcome(v1::SweepReport::OUTCOME_FAILED);
      row_.set_detail(absl::StrCat(reason, "; ", outcome->result.decision()));
      return std::move(row_);
    }
    const v1::Trial& winner = outcome->result.winner();
    const std::string why = absl::StrCat(reason, "; ", outcome->result.decision());
    row_.set_detail(why);
    const bool other = winner.variant().text() != before_.trial().variant().text();
    if (outcome->result.promoted() && other && row_.after_us() < row_.before_us()) {
      row_.set_outcome(v1::SweepReport::OUTCOME_FASTER);
      return std::move(row_);
    }
    absl::StatusOr<space::Variant> variant = space::ParseVariant(winner.variant().text(), means_.host.families);
    if (!variant.ok()) return variant.status();
    absl::StatusOr<search::Candidate> candidate = search::MakeCandidate(*std::move(variant), spec_.tuning_key);
    if (!candidate.ok()) return candidate.status();
    absl::Status status = Judge({*std::move(candidate), winner}, winner.timing());
    if (!status.ok()) return status;
    row_.set_detail(judged_.empty() ? why : absl::StrCat(why, "; ", judged_));
    if (row_.outcome() == v1::SweepReport::OUTCOME_FASTER) {
      status = KeepFaster(outcome->result.incumbent());
    } else if (row_.outcome() == v1::SweepReport::OUTCOME_AMBIGUOUS) {
      row_.set_after_us(winner.timing().median_us());  // as decided: the cycles have settled nothing
    }
    if (!status.ok()) return status;
    return std::move(row_);
  }

  absl::StatusOr<jobs::TuneOutcome> Tune() {
    promotion::ContestRules rules;
    rules.keep_time = false;  // what later nights are compared with does not drift
    rules.objective = plan_.objective();
    rules.energy = IsByEnergy(plan_.objective());
    if (plan_.sanitize()) {
      rules.objection = [this](const v1::Trial& winner, trials::DeviceUse& use) { return ObjectionTo(winner, use); };
    }
    absl::StatusOr<jobs::TuneOutcome> outcome = means_.tuner.Tune(spec_, slot_, job_, rules);
    if (!outcome.ok()) return outcome;
    row_.set_trials(outcome->trials);
    row_.set_compiles(outcome->compiles);
    if (outcome->result.has_winner()) {
      row_.set_after_us(outcome->result.winner().timing().median_us());
      row_.set_variant(outcome->result.winner().variant().text());
    }
    return outcome;
  }

  // What sanitizers have against it; nothing where the device is none that they know. Notes it in the row.
  absl::StatusOr<std::string> ObjectionTo(const v1::Trial& winner, trials::DeviceUse& use) {
    const v1::Device& device = slot_.device();
    if (device.backend() != v1::BACKEND_CUDA) {
      NoteSanitizers(absl::StrCat("none for ", device.id(), ", which is no CUDA device"));
      return "";
    }
    const auto runs = profile::SanitizeTrial(winner.name(), device, means_.sanitizers, job_, use);
    if (!runs.ok()) return runs.status();
    std::string trouble = profile::TroubleOf(*runs);
    NoteSanitizers(trouble.empty() ? "clean" : absl::StrCat(winner.variant().text(), ": ", trouble));
    return trouble;
  }
  void NoteSanitizers(absl::string_view found) {
    row_.set_sanitizers(absl::StrCat(row_.sanitizers(), row_.sanitizers().empty() ? "" : "; ", found));
  }

  // A play-off of one; with a `fresh_seed` (0: none) checked on fresh data, and in many runs.
  absl::StatusOr<v1::Trial> TimeAlone(const promotion::Contestant& contestant, uint64_t fresh_seed,
                                      trials::DeviceUse& use) {
    absl::StatusOr<promotion::PlayedOff> played =
        promotion::PlayOff(spec_.tuning_key, {contestant}, std::nullopt, fresh_seed, means_.code, job_, use);
    if (!played.ok()) return played.status();
    v1::Trial& timed = played->trials.front();
    if (fresh_seed == 0 || !trials::Timed(timed)) return std::move(timed);
    return promotion::AfterManyRuns(spec_.tuning_key, contestant, std::move(timed), means_.code, job_, use);
  }

  // Times a variant in cycles against the incumbent's stored time until they say what has become of it: the row's
  // outcome and time, and judged_.
  absl::Status Judge(const promotion::Contestant& contestant, std::optional<v1::Timing> first) {
    const v1::Timing& before = *before_here_;
    std::vector<Reading> readings;
    if (first.has_value()) {
      readings.push_back(Read(before, *first, RegressionOf(plan_)));
      if (const auto outcome = Settle(readings); outcome.has_value()) {
        row_.set_outcome(*outcome);
        return absl::OkStatus();
      }
    }
    if (absl::Status open = trials::OpenDevice(slot_, job_); !open.ok()) return open;
    uint64_t fresh_seed = SeedFrom(absl::StrCat(job_.name, " ", spec_.tuning_key.problem_text));
    const auto use = trials::TakeDevice(slot_, spec_.tuning_key, means_.host.families, means_.code, job_, fresh_seed);
    if (!use.ok()) return use.status();
    while (true) {
      job_.progress.SetPhase(v1::OperationProgress::PHASE_PLAY_OFF,
                             absl::StrCat("the incumbent against its stored time, play-off ", readings.size() + 1));
      absl::StatusOr<v1::Trial> timed = TimeAlone(contestant, fresh_seed, **use);
      if (!timed.ok()) return timed.status();
      latest_ = *std::move(timed);
      row_.set_variant(latest_.variant().text());
      if (!trials::Timed(latest_)) {
        row_.set_outcome(v1::SweepReport::OUTCOME_FAILED);
        judged_ = absl::StrCat("the incumbent on fresh data: ", attune::Word(latest_.verdict()), " ", latest_.detail());
        return absl::OkStatus();
      }
      if (absl::Status kept = promotion::RecordRetiming(latest_, store(), job_); !kept.ok()) return kept;
      fresh_seed = 0;  // one check a night
      row_.set_after_us(latest_.timing().median_us());
      readings.push_back(Read(before, latest_.timing(), RegressionOf(plan_)));
      if (const auto outcome = Settle(readings); outcome.has_value()) {
        row_.set_outcome(*outcome);
        judged_ = absl::StrFormat("re-timed in %d play-off%s, the last %.4g us", readings.size(),
                                  readings.size() == 1 ? "" : "s", latest_.timing().median_us());
        return absl::OkStatus();
      }
    }
  }

  // The time of `served`, the incumbent, has improved: what is known of it here should say so, and what is served when
  // that is this card's time.
  absl::Status KeepFaster(const v1::Incumbent& served) {
    v1::Trial trial = latest_;
    trial.set_job(job_.name);
    trial.clear_identical_to();
    trial.set_compile_ms(0);
    SetTimestamp(absl::Now(), trial.mutable_finish_time());
    absl::StatusOr<std::string> name =
        trials::WriteFor(job_, [&](const store::JobWrite& write) { return store().AppendTrial(trial, write); });
    if (!name.ok()) return name.status();
    trial.set_name(*name);
    if (!TimedByThisCard(served)) {
      row_.set_detail(absl::StrCat(row_.detail(), "; kept as this card's time"));
      return absl::OkStatus();
    }
    v1::Incumbent incumbent = served;
    incumbent.clear_device_id();  // the card may have another by now
    *incumbent.mutable_timing() = trial.timing();
    incumbent.clear_ties();  // it was timed alone
    promotion::DropChanged(spec_.tuning_key, means_.host.families, /*wrong=*/nullptr, incumbent);
    *incumbent.mutable_trial() = std::move(trial);
    incumbent.set_job(job_.name);
    incumbent.set_why("the incumbent itself got faster, confirmed in cycles");
    SetTimestamp(absl::Now(), incumbent.mutable_promote_time());
    const absl::StatusOr<v1::Incumbent> promoted = trials::WriteFor(
        job_, [&](const store::JobWrite& write) { return means_.results.Promote(incumbent, served, write); });
    if (promoted.ok()) row_.set_detail(absl::StrCat(row_.detail(), "; served with this time from now on"));
    if (!absl::IsAborted(promoted.status()) || store::IsStale(promoted.status())) return promoted.status();
    row_.set_outcome(v1::SweepReport::OUTCOME_AMBIGUOUS);
    row_.set_detail(absl::StrCat(row_.detail(), "; another job has promoted since, and that holds"));
    return absl::OkStatus();
  }

  store::Store& store() const { return means_.code.store(); }

  const SweepMeans& means_;
  const v1::SweepPlan& plan_;
  const search::SearchSpec spec_;
  trials::DeviceSlot& slot_;
  const trials::Job& job_;
  Row row_;
  v1::Incumbent before_;
  std::optional<v1::Timing> before_here_;
  v1::Trial latest_;
  std::string judged_;  // how; empty: by the tuning's own play-off
};

}  // namespace

bool LacksObjective(const v1::SweepPlan& plan, const v1::Incumbent& served) {
  return IsByEnergy(plan.objective()) && !served.pinned() &&
         std::none_of(served.alternatives().begin(), served.alternatives().end(),
                      [&](const v1::Alternative& one) { return one.objective() == plan.objective(); });
}

search::SearchSpec SweepSpec(const v1::SweepPlan& plan, catalog::TuningKey tuning_key) {
  search::SearchSpec spec;
  // The same from night to night: a budget then draws the variants that have their trials already.
  spec.seed = SeedFrom(tuning_key.problem_text);
  spec.tuning_key = std::move(tuning_key);
  spec.families = {plan.families().begin(), plan.families().end()};
  spec.strategy.set_kind(StrategyOf(plan));
  spec.strategy.set_effort(plan.effort());
  spec.strategy.set_max_trials(plan.budget().trials_per_problem());
  spec.known_counts = true;
  if (plan.budget().has_time_per_problem()) *spec.strategy.mutable_max_time() = plan.budget().time_per_problem();
  spec.selection = space::SelectionOf(plan);
  return spec;
}

absl::StatusOr<v1::SweepReport::Row> SweepOne(const SweepMeans& means, const v1::SweepPlan& plan,
                                              search::SearchSpec spec, trials::DeviceSlot& slot,
                                              const trials::Job& job) {
  return SweepProblem(means, plan, std::move(spec), slot, job).Run();
}

}  // namespace attune::sweep
