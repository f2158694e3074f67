#include "server/sweep/plan_sweep.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"
#include "server/catalog/trial_time.h"
#include "server/search/search_spec.h"
#include "server/sweep/card_class.h"
#include "server/sweep/sweep_plan.h"
#include "server/sweep/sweep_problem.h"
#include "server/trials/tuning_key.h"

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

// What a card of the class finds: the one that timed what is served, or else whichever is free first.
absl::StatusOr<PlanRow> PlanProblem(const Problem& problem, const v1::SweepPlan& plan, const CardClass& cards,
                                    const catalog::Host& host, catalog::Results& results, store::Store& store,
                                    const space::Stopped& stopped) {
  PlanRow row;
  row.set_problem(ToText(problem));
  absl::StatusOr<catalog::TuningKey> tuning_key = trials::MakeTuningKey(problem, *cards.front(), plan.policy(), host);
  if (!tuning_key.ok()) return Untunable(std::move(row), tuning_key.status());
  const absl::StatusOr<std::optional<v1::Incumbent>> served = results.Served(catalog::KeyOf(*tuning_key));
  if (!served.ok()) return served.status();
  const v1::Device* const timed_by = TimedBy(*served, cards);
  row.set_device_id(timed_by == nullptr ? catalog::ListOf(cards) : timed_by->id());
  if (timed_by != nullptr) tuning_key = trials::MakeTuningKey(problem, *timed_by, plan.policy(), host);
  if (!tuning_key.ok()) return Untunable(std::move(row), tuning_key.status());
  row.set_tuned(served->has_value());
  const search::SearchSpec spec = SweepSpec(plan, *std::move(tuning_key));
  const absl::StatusOr<search::CandidateSet> candidates =
      search::CandidatesNow(spec, *served, host.families, store, stopped);
  if (!candidates.ok()) return Untunable(std::move(row), candidates.status());
  std::set<std::string> keys;
  for (const search::Candidate& candidate : candidates->all) {
    row.set_known(row.known() + (candidate.known.has_value() ? 1 : 0));
    if (!candidate.known.has_value()) keys.insert(candidate.spec.key);
  }
  row.set_variants(static_cast<int64_t>(candidates->all.size()));
  row.set_trials(search::CountUntried(*candidates, spec, *served));
  row.set_compiles(std::min(static_cast<int64_t>(keys.size()), row.trials()));
  return row;
}

}  // namespace

absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const v1::SweepPlan& plan, const catalog::Host& host,
                                                catalog::Results& results, store::Store& store,
                                                const space::Stopped& stopped, const Clock& clock) {
  const std::vector<const v1::Device*> cards = catalog::DevicesListed(host, plan.device_id());
  if (cards.empty()) {
    const std::string here = catalog::DeviceNames(host);
    return absl::FailedPreconditionError(
        absl::StrCat("device_id is ", Quoted(plan.device_id()), "; this host has ",
                     here.empty() ? "no device: ask one that has (`attune hosts`)" : here));
  }
  const absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  v1::PlanSweepResponse response;
  response.set_device_id(catalog::ListOf(cards));
  const std::vector<CardClass> classes = ClassesOf(cards);
  absl::Duration longest;
  const absl::Duration begin = clock();
  for (const CardClass& of : classes) {
    int64_t runs = 0;  // trials, and incumbents that are checked and timed as in a trial
    for (const Problem& problem : *problems) {
      if (stopped && stopped()) return absl::CancelledError("stopped");
      if (clock() - begin > kMostPlanning) {
        return absl::DeadlineExceededError(absl::StrCat("planning took ", absl::FormatDuration(kMostPlanning), " for ",
                                                        response.rows_size(), " of ", problems->size() * classes.size(),
                                                        " problems; plan fewer at once"));
      }
      const absl::StatusOr<PlanRow> row = PlanProblem(problem, plan, of, host, results, store, stopped);
      if (!row.ok()) return row.status();
      response.set_variants(response.variants() + row->variants());
      response.set_known(response.known() + row->known());
      response.set_trials(response.trials() + row->trials());
      response.set_compiles(response.compiles() + row->compiles());
      runs += row->tuned() && row->trials() == 0 && row->reason().empty() ? 1 : row->trials();
      *response.add_rows() = *row;
    }
    const absl::StatusOr<absl::Duration> each = catalog::RecentTrialTime(*of.front(), store);
    if (!each.ok()) return each.status();
    longest = std::max(longest, *each * runs / static_cast<int64_t>(of.size()));
  }
  if (longest > absl::ZeroDuration()) SetDuration(longest, response.mutable_estimate());
  return response;
}

}  // namespace attune::sweep
