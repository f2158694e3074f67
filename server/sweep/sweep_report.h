// A sweep's report: rows in, totals and a Markdown page out.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_REPORT_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/v1/sweep.pb.h"

namespace attune::sweep {

absl::string_view Word(v1::SweepReport::Outcome outcome);

// Why a sweep failed, as its problems did: no row of it has a result, and one is FAILED. OK otherwise.
absl::Status ErrorOf(const v1::SweepReport& report);

// How many problems have failed, how many the total time did not reach, and what to do about those; empty when there
// are none of either.
std::string WordsOfMissed(const v1::SweepReport& report);

// Fills everything that follows from the rows: totals, `regression`, `markdown`.
void Complete(v1::SweepReport& report);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_REPORT_H_
