// The kind of job that Sweep starts: many problems, by night, with a report. What becomes of each: sweep_problem.h.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_

#include <utility>

#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/jobs/job_kind.h"
#include "server/sweep/sweep_problem.h"

namespace attune::sweep {

// Goes on behind the rows that its report already has, and keeps it after each further row. A problem's own failure is
// its row's.
class SweepJob final : public jobs::JobKindOf<v1::SweepRequest> {
 public:
  SweepJob(const SweepMeans& means, Clock clock)
      : JobKindOf(store::JobKind::kSweep), means_(means), clock_(std::move(clock)) {}

 private:
  jobs::JobTerms TermsOf(const v1::SweepRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::SweepRequest& request) const override;
  absl::StatusOr<jobs::JobTitle> AdmitRequest(const v1::SweepRequest& request, const v1::Device& device) const override;
  absl::StatusOr<Fill> RunRequest(const v1::SweepRequest& request, const jobs::JobRun& run) const override;

  const SweepMeans means_;
  const Clock clock_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_
