#include "server/tuning/plan_sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/tuning/contest.h"
#include "server/tuning/preflight.h"
#include "server/tuning/sweep_job.h"
#include "server/tuning/sweep_plan.h"
#include "server/tuning/tune_problem.h"

namespace attune::tuning {
namespace {

using Row = v1::PlanSweepResponse::Row;

absl::StatusOr<Row> PlanProblem(const Workshop& shop, const v1::SweepPlan& plan, Subject subject) {
  Row row;
  row.set_problem(subject.problem_text);
  absl::StatusOr<std::optional<v1::Incumbent>> served = ServedNow(*shop.store, subject);
  if (!served.ok()) return served.status();
  row.set_tuned(served->has_value());
  const TuneSpec spec = SweepSpec(plan, std::move(subject));
  absl::StatusOr<CandidateSet> candidates = CandidatesNow(shop, spec);
  if (absl::IsFailedPrecondition(candidates.status())) {
    row.set_reason(std::string(candidates.status().message()));
    return row;
  }
  if (!candidates.ok()) return candidates.status();
  std::set<std::string> keys;
  for (const Candidate& candidate : candidates->all) {
    row.set_known(row.known() + (candidate.known.has_value() ? 1 : 0));
    if (!candidate.known.has_value()) keys.insert(candidate.spec.key);
  }
  row.set_variants(static_cast<int64_t>(candidates->all.size()));
  row.set_trials(CountUntried(*candidates, spec));
  row.set_compiles(std::min(static_cast<int64_t>(keys.size()), row.trials()));
  return row;
}

}  // namespace

absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const Workshop& shop, const DeviceSlot& slot,
                                                const v1::SweepPlan& plan) {
  absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  v1::PlanSweepResponse response;
  response.set_device_id(slot.device().id());
  for (const Problem& problem : *problems) {
    absl::StatusOr<Subject> subject = MakeSubject(shop, slot, ToProto(problem), plan.policy());
    if (!subject.ok()) return subject.status();
    absl::StatusOr<Row> row = PlanProblem(shop, plan, *std::move(subject));
    if (!row.ok()) return row.status();
    response.set_variants(response.variants() + row->variants());
    response.set_known(response.known() + row->known());
    response.set_trials(response.trials() + row->trials());
    response.set_compiles(response.compiles() + row->compiles());
    *response.add_rows() = *std::move(row);
  }
  if (const absl::Duration each = RecentTrialTime(slot.device(), shop.store); each > absl::ZeroDuration()) {
    SetDuration(each * response.trials(), response.mutable_estimate());
  }
  return response;
}

}  // namespace attune::tuning
