// Whether a re-timed incumbent is as fast as it was: SAME, FASTER or SLOWER only when confirmed in cycles.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_OUTCOME_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_OUTCOME_H_

#include <optional>

#include "absl/types/span.h"
#include "attune/v1/sweep.pb.h"
#include "attune/v1/trial.pb.h"

namespace attune::sweep {

// What one cycle says.
enum class Reading {
  kSame,     // the medians differ by no more than the regression share
  kFaster,   // by more, and the intervals are apart
  kSlower,   //
  kUnclear,  // by more, but the intervals overlap or another process was on the device
};
Reading Read(const v1::Timing& before, const v1::Timing& now, double regression);

// What the readings so far, which are not none, come to: SAME at the first that says so, FASTER and SLOWER after three
// in a row. nullopt: nothing yet.
std::optional<Reading> Confirmed(absl::Span<const Reading> readings);

// What is confirmed; AMBIGUOUS after six cycles without it. nullopt: take another.
std::optional<v1::SweepReport::Outcome> Settle(absl::Span<const Reading> readings);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_OUTCOME_H_
