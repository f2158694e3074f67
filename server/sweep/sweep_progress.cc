#include "server/sweep/sweep_progress.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"

namespace attune::sweep {
namespace {

constexpr size_t kMostTold = 8;  // problems at hand

bool Waits(const v1::Operation& operation) {
  return operation.state() == v1::Operation::STATE_QUEUED || operation.progress().queue_position() > 0;
}

std::string MessageOf(const v1::Operation& operation, bool name_card) {
  const v1::OperationProgress& progress = operation.progress();
  return absl::StrCat(operation.problem(), name_card ? absl::StrCat(" on ", progress.device_id()) : "",
                      progress.message().empty() ? "" : absl::StrCat(": ", progress.message()));
}

void AddCounts(const v1::OperationProgress& part, v1::OperationProgress& sum) {
  sum.set_trials_done(sum.trials_done() + part.trials_done());
  sum.set_trials_total(sum.trials_total() + part.trials_total());
  sum.set_trials_reused(sum.trials_reused() + part.trials_reused());
  sum.set_compiles_done(sum.compiles_done() + part.compiles_done());
  sum.set_compiles_total(sum.compiles_total() + part.compiles_total());
  for (const v1::VerdictCount& counted : part.verdicts()) {
    const auto same = std::find_if(sum.mutable_verdicts()->begin(), sum.mutable_verdicts()->end(),
                                   [&](const auto& count) { return count.verdict() == counted.verdict(); });
    if (same == sum.mutable_verdicts()->end()) {
      *sum.add_verdicts() = counted;
    } else {
      same->set_count(same->count() + counted.count());
    }
  }
}

SweepPace::AtHand PaceOf(const v1::Operation& operation) {
  SweepPace::AtHand pace;
  if (const absl::StatusOr<Problem> problem = ParseProblem(operation.problem()); problem.ok()) {
    pace.work = Flops(*problem);
  }
  if (Waits(operation)) return pace;
  pace.since = DurationOf(operation.progress().elapsed());
  if (operation.progress().has_eta()) pace.eta = DurationOf(operation.progress().eta());
  return pace;
}

}  // namespace

v1::OperationProgress ProgressOf(const std::vector<v1::Operation>& at_hand, int64_t done, int64_t problems,
                                 SweepPace pace) {
  std::vector<const v1::Operation*> working;
  for (const v1::Operation& operation : at_hand) {
    if (!Waits(operation)) working.push_back(&operation);
    pace.at_hand.push_back(PaceOf(operation));
  }
  v1::OperationProgress progress;
  if (!working.empty()) progress = working.front()->progress();
  if (working.empty() && !at_hand.empty()) progress = at_hand.front().progress();
  std::vector<std::string> messages;
  for (size_t i = 0; i < working.size(); ++i) {
    if (i < kMostTold) messages.push_back(MessageOf(*working[i], working.size() > 1));
    if (i > 0) AddCounts(working[i]->progress(), progress);
  }
  if (working.size() > kMostTold) messages.push_back(absl::StrCat("and ", working.size() - kMostTold, " more"));
  progress.set_message(absl::StrJoin(messages, "; "));
  if (working.size() > 1) progress.clear_best();  // of which problem?
  progress.clear_device_id();
  progress.clear_elapsed();
  progress.clear_eta();
  progress.set_problems_done(done);
  progress.set_problems_total(problems);
  if (const std::optional<absl::Duration> left = pace.TimeLeft(); left.has_value()) {
    SetDuration(*left, progress.mutable_eta());
  }
  return progress;
}

}  // namespace attune::sweep
