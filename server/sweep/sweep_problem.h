// One problem of a sweep, on its way to its row in the report.
//
// Without incumbent it is tuned (NEW). When a source, the toolchain or the driver has changed since the incumbent's
// trial, or variants have never been tried, what has no trial is tried. Otherwise the incumbent alone is timed against
// its stored time; that compiles nothing. One that got slower stays served and is reported until its time comes back or
// something else is promoted; one that got faster is promoted anew with today's time. FASTER is said of nothing else
// than what is served from then on.
//
// A card is compared with itself alone. One that has never timed the incumbent, which another card of its class did,
// tunes and is NEW; what it found then is its stored time. When the incumbent gets faster on it, that time is kept as
// this card's; what is served keeps the time of the card that promoted it.
//
// Where the plan asks for sanitizers, what would be served in place of another runs under them before it is promoted.
// One with findings, or without a result, is not; the others play off again.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PROBLEM_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PROBLEM_H_

#include "absl/status/statusor.h"
#include "attune/v1/sweep.pb.h"
#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/jobs/tune_problem.h"
#include "server/profile/sanitizing.h"
#include "server/search/search_spec.h"
#include "server/trials/code.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::sweep {

// What sweeps work with; all outlive them.
struct SweepMeans {
  const catalog::Host& host;
  catalog::Results& results;
  const trials::CodeSource& code;
  const jobs::ProblemTuner& tuner;
  profile::SanitizerMeans sanitizers;
};

// Whether the plan's objective wants energies that nobody has measured of what is served.
bool LacksObjective(const v1::SweepPlan& plan, const v1::Incumbent& served);

// How the sweep tunes one of its problems.
search::SearchSpec SweepSpec(const v1::SweepPlan& plan, catalog::TuningKey tuning_key);

// Cancelled when the job was asked to stop; another error is the problem's own.
absl::StatusOr<v1::SweepReport::Row> SweepOne(const SweepMeans& means, const v1::SweepPlan& plan,
                                              search::SearchSpec spec, trials::DeviceSlot& slot,
                                              const trials::Job& job);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PROBLEM_H_
