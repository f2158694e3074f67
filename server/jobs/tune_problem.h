// Tuning one problem on one device: the whole loop, for Tune and for each problem of a sweep.
#ifndef ATTUNE_SERVER_JOBS_TUNE_PROBLEM_H_
#define ATTUNE_SERVER_JOBS_TUNE_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/jobs/job.h"
#include "server/search/candidates.h"

namespace attune::jobs {

struct TuneSpec {
  search::Subject subject;
  std::vector<std::string> families;  // empty: all that apply
  v1::Strategy strategy;
  uint64_t seed = 1;  // where the strategy names none
  bool retry_known = false;
};

struct TuneOutcome {
  v1::TuneResult result;
  int64_t trials = 0;  // run now, not those reused
  int64_t compiles = 0;
};

// The subject of a request. Unavailable when the device's back end has no compiler here, FailedPrecondition when the
// problem cannot fit the memory there is (verify/footprint.h).
absl::StatusOr<search::Subject> MakeSubject(const Workshop& shop, const trials::DeviceSlot& slot,
                                            const v1::Problem& problem, v1::Policy policy);

// What would be tried now, the incumbent's variant included when it is feasible today.
absl::StatusOr<search::CandidateSet> CandidatesNow(const Workshop& shop, const TuneSpec& spec,
                                                   const space::Stopped& stopped = nullptr);

// How many of them the strategy would ask for that have no trial yet, time limits left out.
int64_t CountUntried(const search::CandidateSet& candidates, const TuneSpec& spec);

// Cancelled when the operation was asked to stop.
absl::StatusOr<TuneOutcome> TuneProblem(JobContext& context, const TuneSpec& spec);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TUNE_PROBLEM_H_
