// The kind of job that Tune starts: one problem.
#ifndef ATTUNE_SERVER_JOBS_TUNE_JOB_H_
#define ATTUNE_SERVER_JOBS_TUNE_JOB_H_

#include "server/catalog/host.h"
#include "server/jobs/job_kind.h"
#include "server/jobs/tune_problem.h"

namespace attune::jobs {

// What it is given outlives it.
class TuneJob final : public JobKindOf<v1::TuneRequest> {
 public:
  TuneJob(const catalog::Host& host, const ProblemTuner& tuner)
      : JobKindOf(store::JobKind::kTune), host_(host), tuner_(tuner) {}

 private:
  JobTerms TermsOf(const v1::TuneRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::TuneRequest& request) const override;
  v1::TuneRequest Canonical(v1::TuneRequest request) const override;
  absl::StatusOr<JobTitle> AdmitRequest(const v1::TuneRequest& request,
                                        const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::TuneRequest& request, const JobRun& run) const override;
  absl::StatusOr<std::vector<space::Variant>> SeedsOf(const v1::TuneRequest& request,
                                                      const catalog::TuningKey& tuning_key) const;

  const catalog::Host& host_;
  const ProblemTuner& tuner_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TUNE_JOB_H_
