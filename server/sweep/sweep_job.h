// The kind of job that Sweep starts: many problems, by night, with a report. Each problem is a part of it, a job that
// any free card takes (sweep_problem_job.h), in a fleet any of its class on whichever host, but for one that has an
// incumbent to be timed again, which goes to the card that timed it; the sweep itself takes no card. What becomes of
// each: sweep_problem.h.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_

#include "attune/v1/service.pb.h"
#include "server/jobs/job_kind.h"
#include "server/sweep/sweep_problem.h"

namespace attune::sweep {

// Goes on behind the rows that its report already has and the parts that there are, and keeps its report after each
// further row.
class SweepJob final : public jobs::JobKindOf<v1::SweepRequest> {
 public:
  explicit SweepJob(const SweepMeans& means) : JobKindOf(store::JobKind::kSweep), means_(means) {}

 private:
  jobs::JobTerms TermsOf(const v1::SweepRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::SweepRequest& request) const override;
  absl::StatusOr<jobs::JobTitle> AdmitRequest(const v1::SweepRequest& request,
                                              const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::SweepRequest& request, const jobs::JobRun& run) const override;

  const SweepMeans means_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_JOB_H_
