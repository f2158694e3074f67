#include "server/sweep/plan_sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/proto_time.h"
#include "server/catalog/preflight.h"
#include "server/jobs/tune_problem.h"
#include "server/promotion/contest.h"
#include "server/sweep/sweep_job.h"
#include "server/sweep/sweep_plan.h"

namespace attune::sweep {
namespace {

using PlanRow = v1::PlanSweepResponse::Row;

// `row` with the reason for which its problem cannot be tuned: it is too large for the memory or for listing its
// variants, or no kernel family applies. Anything else is an error of the plan.
absl::StatusOr<PlanRow> Untunable(PlanRow row, const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status) && !absl::IsResourceExhausted(status)) return status;
  row.set_reason(std::string(status.message()));
  return row;
}

absl::StatusOr<PlanRow> PlanProblem(const jobs::Workshop& shop, const trials::DeviceSlot& slot,
                                    const v1::SweepPlan& plan, const Problem& problem, const space::Stopped& stopped) {
  PlanRow row;
  row.set_problem(ToText(problem));
  absl::StatusOr<search::Subject> subject = jobs::MakeSubject(shop, slot, ToProto(problem), plan.policy());
  if (!subject.ok()) return Untunable(std::move(row), subject.status());
  absl::StatusOr<std::optional<v1::Incumbent>> served = promotion::ServedNow(*shop.store, *subject);
  if (!served.ok()) return served.status();
  row.set_tuned(served->has_value());
  const jobs::TuneSpec spec = SweepSpec(plan, *std::move(subject));
  absl::StatusOr<search::CandidateSet> candidates = jobs::CandidatesNow(shop, spec, stopped);
  if (!candidates.ok()) return Untunable(std::move(row), candidates.status());
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
                                                const v1::SweepPlan& plan, const space::Stopped& stopped) {
  absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  v1::PlanSweepResponse response;
  response.set_device_id(slot.device().id());
  const absl::Duration begin = shop.clock();
  for (const Problem& problem : *problems) {
    if (stopped && stopped()) return absl::CancelledError("stopped");
    if (shop.clock() - begin > kMostPlanning) {
      return absl::DeadlineExceededError(absl::StrCat("planning took ", absl::FormatDuration(kMostPlanning), " for ",
                                                      response.rows_size(), " of ", problems->size(),
                                                      " problems; plan fewer at once"));
    }
    absl::StatusOr<PlanRow> row = PlanProblem(shop, slot, plan, problem, stopped);
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
