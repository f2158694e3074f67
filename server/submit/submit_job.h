// The kind of job that Submit starts: a kernel that its author brings against a base, KEEP or REVERT. Nothing that is
// served changes. docs/submit.md.
#ifndef ATTUNE_SERVER_SUBMIT_SUBMIT_JOB_H_
#define ATTUNE_SERVER_SUBMIT_SUBMIT_JOB_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/jobs/job_kind.h"
#include "server/profile/sanitizing.h"
#include "server/submit/limits.h"
#include "server/submit/try_problem.h"
#include "server/trials/trial_phase.h"

namespace attune::submit {

class SubmitJob final : public jobs::JobKindOf<v1::SubmitRequest> {
 public:
  // All outlive it.
  struct Options {
    const catalog::Host& host;
    catalog::Results& results;
    const trials::TrialPhase::Means& means;
    std::string library;  // kernels_src/, whose libraries sources may include
    TimeLimits times;
    profile::SanitizerMeans sanitizers;
  };
  explicit SubmitJob(const Options& options)
      : JobKindOf(store::JobKind::kSubmit),
        options_(options),
        means_{options.host.families, options.means, options.times} {}

 private:
  jobs::JobTerms TermsOf(const v1::SubmitRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::SubmitRequest& request) const override;
  absl::StatusOr<jobs::JobTitle> AdmitRequest(const v1::SubmitRequest& request,
                                              const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::SubmitRequest& request, const jobs::JobRun& run) const override;

  // Of one problem; none where nothing is served, or what the request names does not compute it.
  absl::StatusOr<std::optional<Base>> BaseOf(const v1::SubmitRequest& request, const std::string& content_hash,
                                             const catalog::TuningKey& tuning_key, const jobs::JobRun& run) const;
  absl::StatusOr<std::optional<v1::Submission>> Previous(const v1::SubmitRequest& request,
                                                         const std::string& content_hash,
                                                         const jobs::JobRun& run) const;
  absl::StatusOr<std::optional<Base>> Served(const catalog::TuningKey& tuning_key, const jobs::JobRun& run) const;
  absl::StatusOr<std::optional<Base>> Submitted(const v1::Submission& submission,
                                                const catalog::TuningKey& tuning_key) const;
  absl::StatusOr<v1::SubmitResult> TryAll(const v1::SubmitRequest& request,
                                          const std::shared_ptr<const space::Family>& family,
                                          const std::string& content_hash, const jobs::JobRun& run,
                                          const trials::Job& job) const;

  const Options options_;
  const Means means_;
};

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_SUBMIT_JOB_H_
