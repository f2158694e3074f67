#include "server/sweep/plan_sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/base/proto_time.h"
#include "server/catalog/preflight.h"
#include "server/jobs/tune_problem.h"
#include "server/promotion/contest.h"
#include "server/sweep/sweep_job.h"
#include "server/sweep/sweep_plan.h"

namespace attune::sweep {
namespace {

using Row = v1::PlanSweepResponse::Row;

absl::StatusOr<Row> PlanProblem(const jobs::Workshop& shop, const v1::SweepPlan& plan, search::Subject subject) {
  Row row;
  row.set_problem(subject.problem_text);
  absl::StatusOr<std::optional<v1::Incumbent>> served = promotion::ServedNow(*shop.store, subject);
  if (!served.ok()) return served.status();
  row.set_tuned(served->has_value());
  const jobs::TuneSpec spec = SweepSpec(plan, std::move(subject));
  absl::StatusOr<search::CandidateSet> candidates = jobs::CandidatesNow(shop, spec);
  if (absl::IsFailedPrecondition(candidates.status())) {
    row.set_reason(std::string(candidates.status().message()));
    return row;
  }
  if (!candidates.ok()) return candidates.status();
  std::set<std::string> keys;
  for (const search::Candidate& candidate : candidates->all) {
    row.set_known(row.known() + (candidate.known.has_value() ? 1 : 0));
    if (!candidate.known.has_value()) keys.insert(candidate.spec.key);
  }
  row.set_variants(static_cast<int64_t>(candidates->all.size()));
  row.set_trials(jobs::CountUntried(*candidates, spec));
  row.set_compiles(std::min(static_cast<int64_t>(keys.size()), row.trials()));
  return row;
}

}  // namespace

absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const jobs::Workshop& shop, const trials::DeviceSlot& slot,
                                                const v1::SweepPlan& plan) {
  absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  v1::PlanSweepResponse response;
  response.set_device_id(slot.device().id());
  for (const Problem& problem : *problems) {
    absl::StatusOr<search::Subject> subject = jobs::MakeSubject(shop, slot, ToProto(problem), plan.policy());
    if (!subject.ok()) return subject.status();
    absl::StatusOr<Row> row = PlanProblem(shop, plan, *std::move(subject));
    if (!row.ok()) return row.status();
    response.set_variants(response.variants() + row->variants());
    response.set_known(response.known() + row->known());
    response.set_trials(response.trials() + row->trials());
    response.set_compiles(response.compiles() + row->compiles());
    *response.add_rows() = *std::move(row);
  }
  if (const absl::Duration each = catalog::RecentTrialTime(slot.device(), shop.store); each > absl::ZeroDuration()) {
    SetDuration(each * response.trials(), response.mutable_estimate());
  }
  return response;
}

}  // namespace attune::sweep
