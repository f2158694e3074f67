// A nightly sweep: tunes what is new, stale or changed, re-times the other incumbents, reports.
//
// For each problem: without incumbent it is tuned (NEW). When a source, the toolchain or the driver has changed since
// the incumbent's trial, or variants have never been tried, what has no trial is tried. Otherwise the incumbent alone
// is timed against its stored time; that compiles nothing. One that got slower stays served and is reported until its
// time comes back or something else is promoted; one that got faster is promoted anew with today's time.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/sweep.pb.h"
#include "server/jobs/job.h"
#include "server/jobs/tune_problem.h"

namespace attune::sweep {

// How the sweep tunes one of its problems.
jobs::TuneSpec SweepSpec(const v1::SweepPlan& plan, search::Subject subject);

// Goes on behind the rows that `report` already has, and has `save` keep it after each further row. Cancelled when the
// operation was asked to stop, or the status of a failed `save`; a problem's own failure is its row's.
absl::StatusOr<v1::SweepReport> RunSweep(jobs::JobContext& context, const v1::SweepPlan& plan, v1::SweepReport report,
                                         const std::function<absl::Status(const v1::SweepReport&)>& save);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_
