#include "server/sweep/sweep_job.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/base/seed.h"
#include "server/jobs/tune_problem.h"
#include "server/promotion/contest.h"
#include "server/promotion/play_off.h"
#include "server/sweep/sweep_outcome.h"
#include "server/sweep/sweep_plan.h"
#include "server/sweep/sweep_report.h"
#include "server/trials/reference.h"

namespace attune::sweep {
namespace {

using Row = v1::SweepReport::Row;

// One problem's way to its row.
class SweepProblem {
 public:
  SweepProblem(jobs::JobContext& context, const v1::SweepPlan& plan, jobs::TuneSpec spec)
      : context_(context), plan_(plan), spec_(std::move(spec)) {
    row_.set_problem(spec_.subject.problem_text);
  }

  absl::StatusOr<Row> Run() {
    absl::StatusOr<std::optional<v1::Incumbent>> before = promotion::ServedNow(*context_.shop.store, spec_.subject);
    if (!before.ok()) return before.status();
    if (!before->has_value()) return TuneNew();
    before_ = **before;
    row_.set_before_us(promotion::ServedTiming(before_).median_us());
    absl::StatusOr<search::CandidateSet> candidates =
        jobs::CandidatesNow(context_.shop, spec_, jobs::StoppedWith(context_));
    if (!candidates.ok()) return candidates.status();
    const std::optional<size_t> index = candidates->Find(before_.trial().variant().text());
    const bool changed =
        !index.has_value() ||
        !search::SameDependencies(before_.trial().dependencies(),
                                  search::DependenciesOf(*candidates->all[*index].variant.family, spec_.subject));
    const int64_t untried = jobs::CountUntried(*candidates, spec_);
    if (changed || untried > 0) return TuneAgain(changed ? "sources, toolchain or driver changed" : "new variants");
    const search::Candidate& served = candidates->all[*index];
    absl::Status status = Judge({served, served.known.value_or(before_.trial())}, std::nullopt);
    if (!status.ok()) return status;
    if (row_.outcome() == v1::SweepReport::OUTCOME_FASTER) status = PromoteFaster();
    if (!status.ok()) return status;
    return std::move(row_);
  }

 private:
  absl::StatusOr<Row> TuneNew() {
    absl::StatusOr<jobs::TuneOutcome> outcome = Tune();
    if (!outcome.ok()) return outcome.status();
    row_.set_outcome(outcome->result.has_incumbent() ? v1::SweepReport::OUTCOME_NEW : v1::SweepReport::OUTCOME_FAILED);
    row_.set_detail(outcome->result.decision());
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
    absl::StatusOr<space::Variant> variant = space::ParseVariant(winner.variant().text(), context_.shop.families);
    if (!variant.ok()) return variant.status();
    absl::StatusOr<search::Candidate> candidate = search::MakeCandidate(*std::move(variant), spec_.subject);
    if (!candidate.ok()) return candidate.status();
    if (absl::Status status = Judge({*std::move(candidate), winner}, winner.timing()); !status.ok()) return status;
    const bool other = winner.variant().text() != before_.trial().variant().text();
    if (outcome->result.promoted() && other && row_.outcome() != v1::SweepReport::OUTCOME_SLOWER) {
      row_.set_outcome(v1::SweepReport::OUTCOME_FASTER);
    }
    row_.set_detail(absl::StrCat(reason, "; ", outcome->result.decision()));
    return std::move(row_);
  }

  absl::StatusOr<jobs::TuneOutcome> Tune() {
    absl::StatusOr<jobs::TuneOutcome> outcome = jobs::TuneProblem(context_, spec_);
    if (!outcome.ok()) return outcome;
    row_.set_trials(outcome->trials);
    row_.set_compiles(outcome->compiles);
    if (outcome->result.has_winner()) {
      row_.set_after_us(outcome->result.winner().timing().median_us());
      row_.set_variant(outcome->result.winner().variant().text());
    }
    return outcome;
  }

  // Times a variant in cycles against the incumbent's stored time until they say what has become of it.
  absl::Status Judge(const promotion::Contestant& contestant, std::optional<v1::Timing> first) {
    const v1::Timing& before = promotion::ServedTiming(before_);
    std::vector<Reading> readings;
    if (first.has_value()) {
      readings.push_back(Read(before, *first, RegressionOf(plan_)));
      if (const auto outcome = Settle(readings); outcome.has_value()) {
        row_.set_outcome(*outcome);
        return absl::OkStatus();
      }
    }
    jobs::SetPhase(context_, v1::OperationProgress::PHASE_REFERENCE, "compiling the reference kernel");
    absl::StatusOr<worker::v1::PrepareRequest> prepare = trials::MakePrepareRequest(context_, spec_.subject);
    if (!prepare.ok()) return prepare.status();
    jobs::SetPhase(context_, v1::OperationProgress::PHASE_REFERENCE, "inputs and reference results");
    trials::DeviceSession session(context_.slot, context_.priority, context_.operation.stop_token(),
                                  context_.operation.waiter());
    session.Use(*std::move(prepare));
    uint64_t fresh_seed = SeedFrom(absl::StrCat(context_.operation.name(), " ", spec_.subject.problem_text));
    while (true) {
      jobs::SetPhase(context_, v1::OperationProgress::PHASE_PLAY_OFF,
                     absl::StrCat("the incumbent against its stored time, cycle ", readings.size() + 1));
      absl::StatusOr<std::vector<v1::Trial>> timed =
          promotion::PlayOff(context_, spec_.subject, {contestant}, fresh_seed, session);
      if (!timed.ok()) return timed.status();
      latest_ = std::move(timed->front());
      row_.set_variant(latest_.variant().text());
      if (!promotion::Timed(latest_)) {
        row_.set_outcome(v1::SweepReport::OUTCOME_FAILED);
        row_.set_detail(
            absl::StrCat("the incumbent on fresh data: ", attune::Word(latest_.verdict()), " ", latest_.detail()));
        return absl::OkStatus();
      }
      fresh_seed = 0;  // one check a night
      row_.set_after_us(latest_.timing().median_us());
      readings.push_back(Read(before, latest_.timing(), RegressionOf(plan_)));
      if (const auto outcome = Settle(readings); outcome.has_value()) {
        row_.set_outcome(*outcome);
        row_.set_detail(absl::StrCat("re-timed in ", readings.size(), readings.size() == 1 ? " cycle" : " cycles"));
        return absl::OkStatus();
      }
    }
  }

  // The incumbent's own time has improved; what is served should say so.
  absl::Status PromoteFaster() {
    v1::Trial trial = latest_;
    trial.set_job(context_.operation.name());
    trial.clear_identical_to();
    trial.set_compile_ms(0);
    SetTimestamp(absl::Now(), trial.mutable_finish_time());
    absl::StatusOr<std::string> name = context_.shop.store->AppendTrial(trial);
    if (!name.ok()) return name.status();
    trial.set_name(*name);
    v1::Incumbent incumbent = before_;
    *incumbent.mutable_timing() = trial.timing();
    incumbent.clear_ties();  // it was timed alone
    *incumbent.mutable_trial() = std::move(trial);
    incumbent.set_job(context_.operation.name());
    incumbent.set_why("the incumbent itself got faster, confirmed in cycles");
    SetTimestamp(absl::Now(), incumbent.mutable_promote_time());
    absl::StatusOr<v1::Incumbent> promoted = context_.shop.store->Promote(incumbent, before_.name());
    if (absl::IsAborted(promoted.status())) return absl::OkStatus();  // another job has promoted since: that holds
    if (promoted.ok()) context_.shop.promoted(*promoted);
    return promoted.status();
  }

  jobs::JobContext& context_;
  const v1::SweepPlan& plan_;
  const jobs::TuneSpec spec_;
  Row row_;
  v1::Incumbent before_;
  v1::Trial latest_;
};

}  // namespace

jobs::TuneSpec SweepSpec(const v1::SweepPlan& plan, search::Subject subject) {
  jobs::TuneSpec spec;
  // The same from night to night: a budget then draws the variants that have their trials already.
  spec.seed = SeedFrom(subject.problem_text);
  spec.subject = std::move(subject);
  spec.families = {plan.families().begin(), plan.families().end()};
  if (plan.budget().trials_per_problem() > 0) {
    spec.strategy.set_kind(v1::Strategy::KIND_RANDOM);
    spec.strategy.set_max_trials(plan.budget().trials_per_problem());
  }
  if (plan.budget().has_time_per_problem()) *spec.strategy.mutable_max_time() = plan.budget().time_per_problem();
  return spec;
}

absl::StatusOr<v1::SweepReport> RunSweep(jobs::JobContext& context, const v1::SweepPlan& plan, v1::SweepReport report,
                                         const std::function<absl::Status(const v1::SweepReport&)>& save) {
  absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  report.set_title(plan.title());
  report.set_device_id(context.slot.device().id());
  std::set<std::string> done;
  for (const Row& row : report.rows()) done.insert(row.problem());
  trials::SweepPace pace(static_cast<int64_t>(problems->size()), report.rows_size());
  context.sweep = &pace;
  const absl::Duration begin = context.shop.clock();
  const absl::Duration most = plan.budget().has_total_time() ? absl::Seconds(plan.budget().total_time().seconds()) +
                                                                   absl::Nanoseconds(plan.budget().total_time().nanos())
                                                             : absl::InfiniteDuration();
  for (size_t i = 0; i < problems->size(); ++i) {
    const std::string text = ToText((*problems)[i]);
    if (done.contains(text)) continue;
    if (context.operation.stop_token().stop_requested()) return absl::CancelledError("stopped");
    context.prefix = absl::StrCat(text, ": ");
    pace.Begin(context.shop.clock());
    context.operation.Update([&](v1::Operation& operation) {
      v1::OperationProgress& progress = *operation.mutable_progress();
      jobs::Restart(context, progress);
      progress.set_phase(v1::OperationProgress::PHASE_ENUMERATE);
    });
    Row row;
    if (context.shop.clock() - begin >= most) {
      row.set_problem(text);
      row.set_outcome(v1::SweepReport::OUTCOME_SKIPPED);
      row.set_detail("the sweep's total time was spent");
    } else {
      absl::StatusOr<Row> result;
      absl::StatusOr<search::Subject> subject =
          jobs::MakeSubject(context.shop, context.slot, ToProto((*problems)[i]), plan.policy());
      if (subject.ok()) {
        result = SweepProblem(context, plan, SweepSpec(plan, *std::move(subject))).Run();
      } else {
        result = subject.status();
      }
      if (absl::IsCancelled(result.status())) return result.status();
      if (result.ok()) {
        row = *std::move(result);
      } else {
        row.set_problem(text);
        row.set_outcome(v1::SweepReport::OUTCOME_FAILED);
        row.set_detail(std::string(result.status().message()));
      }
    }
    *report.add_rows() = std::move(row);
    pace.End(context.shop.clock());
    Complete(report);
    if (absl::Status status = save(report); !status.ok()) return status;
  }
  context.operation.Update([&](v1::Operation& operation) { jobs::Restart(context, *operation.mutable_progress()); });
  return report;
}

}  // namespace attune::sweep
