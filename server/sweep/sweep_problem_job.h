// The kind of job that works on one problem of a sweep, on whichever of its cards is free first.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PROBLEM_JOB_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PROBLEM_JOB_H_

#include <cstddef>
#include <string>
#include <vector>

#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/jobs/job_kind.h"
#include "server/jobs/parts.h"
#include "server/sweep/sweep_problem.h"

namespace attune::sweep {

// Of the part that is the plan's problem number `problem` for the class of `card`. It says the class, because a resumed
// sweep may find other cards than it began with.
std::string PartKey(size_t problem, const v1::Device& card);
// The part of a sweep that is one of its problems, for one of `cards`.
jobs::Part PartFor(const v1::SweepPlan& plan, std::string key, const std::string& problem_text,
                   std::vector<std::string> cards);

// The row that a part has ended with. A failed one has its row too, unless it failed before it came to its problem.
v1::SweepReport::Row RowOf(const v1::Operation& part);

// Its request is the plan with one problem, its result a report of one row; it fails when that is FAILED. What it is
// given outlives it.
class SweepProblemJob final : public jobs::JobKindOf<v1::SweepRequest> {
 public:
  SweepProblemJob(const SweepMeans& means, Clock clock)
      : JobKindOf(store::JobKind::kSweepProblem), means_(means), clock_(std::move(clock)) {}

 private:
  jobs::JobTerms TermsOf(const v1::SweepRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::SweepRequest& request) const override;
  absl::StatusOr<jobs::JobTitle> AdmitRequest(const v1::SweepRequest& request,
                                              const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::SweepRequest& request, const jobs::JobRun& run) const override;

  const SweepMeans means_;
  const Clock clock_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PROBLEM_JOB_H_
