// Runs of one candidate by the hundred, each looked at: what is wrong once in a hundred runs passes a check.
//
// The host reads back and compares a case's first run; where there is an inspection, the device then looks whether a
// further run has the bits that the host has seen, and the host at what has others.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_MANY_RUNS_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_MANY_RUNS_H_

#include <array>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"
#include "server/verify/case.h"
#include "server/verify/inspection.h"
#include "server/verify/loaded_candidate.h"
#include "server/verify/outputs.h"
#include "server/verify/verify.h"

namespace attune::verify {

class ManyRuns {
 public:
  // The candidate writes to `outputs`, which are read back into `results`. `inspection` may be null. All of these
  // outlive this. A case has one part in `cases` of the runs, 64 to 1,000, and of the time `most`.
  ManyRuns(device::Device& device, const Problem& problem, Outputs& outputs, std::array<OutputSnapshot, 2>& results,
           Inspection* inspection, int cases, absl::Duration most)
      : device_(device),
        problem_(problem),
        outputs_(outputs),
        first_(results[0]),
        later_(results[1]),
        inspection_(inspection),
        cases_(cases),
        most_(most) {}

  // What is wrong with a run, which has its number, or with scratch after the last; inputs are the caller's to look at.
  // An error status when the device failed.
  absl::StatusOr<Finding> Of(LoadedCandidate& candidate, const Case& checked, bool deterministic);

 private:
  // Of a run that the host has read back.
  Finding Compare(const OutputSnapshot& result, const Case& checked, bool is_first, bool deterministic) const;

  device::Device& device_;
  const Problem& problem_;
  Outputs& outputs_;
  OutputSnapshot& first_;
  OutputSnapshot& later_;
  Inspection* const inspection_;
  const int cases_;
  const absl::Duration most_;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_MANY_RUNS_H_
