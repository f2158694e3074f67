// The kind of job that EvaluateVariant starts: one given variant against the incumbent, KEEP or REVERT.
//
// KEEP when it is right, FASTER than the incumbent in a play-off and by at least 2 %, when there is no incumbent, or
// when it is the incumbent. A KEEP is a promotion by the rules of promotion.h, asked for 2 %; anything else is REVERT
// and leaves the incumbent where it is. A pin is PINNED as soon as the variant is right and timed, and REVERT when it
// is not.
#ifndef ATTUNE_SERVER_JOBS_EVALUATE_JOB_H_
#define ATTUNE_SERVER_JOBS_EVALUATE_JOB_H_

#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/jobs/job_kind.h"
#include "server/promotion/contest.h"
#include "server/trials/trial_phase.h"

namespace attune::jobs {

class EvaluateJob final : public JobKindOf<v1::EvaluateVariantRequest> {
 public:
  // All outlive it.
  struct Options {
    const catalog::Host& host;
    catalog::Results& results;
    const trials::TrialPhase::Means& means;
    const promotion::Contests& contests;
  };
  explicit EvaluateJob(const Options& options) : JobKindOf(store::JobKind::kEvaluate), options_(options) {}

 private:
  JobTerms TermsOf(const v1::EvaluateVariantRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::EvaluateVariantRequest& request) const override;
  absl::StatusOr<JobTitle> AdmitRequest(const v1::EvaluateVariantRequest& request,
                                        const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::EvaluateVariantRequest& request, const JobRun& run) const override;

  const Options options_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_EVALUATE_JOB_H_
