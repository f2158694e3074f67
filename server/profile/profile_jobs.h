// The kinds of jobs that Profile and Sanitize start: a trial's code under a tool, what that says kept with the trial.
//
// Behind interactive jobs. The device's worker keeps its lock and gives its memory back while a tool has the device, so
// that nobody else is on it; between two sanitizers, others may go first.
#ifndef ATTUNE_SERVER_PROFILE_PROFILE_JOBS_H_
#define ATTUNE_SERVER_PROFILE_PROFILE_JOBS_H_

#include <string>
#include <vector>

#include "attune/v1/profiling.pb.h"
#include "server/catalog/host.h"
#include "server/jobs/job_kind.h"
#include "server/profile/tools.h"
#include "server/store/store.h"

namespace attune::profile {

// All outlive the jobs.
struct Means {
  const catalog::Host& host;
  store::Store& store;
  Tools* tools;                            // null: this host runs none
  absl::Duration most = absl::Minutes(2);  // of a job's tools, all together
};

// Requests name a trial (subject.h) and a device.
class ProfileJob final : public jobs::JobKindOf<v1::ProfileRequest> {
 public:
  explicit ProfileJob(const Means& means) : JobKindOf(store::JobKind::kProfile), means_(means) {}

 private:
  jobs::JobTerms TermsOf(const v1::ProfileRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::ProfileRequest& request) const override;
  absl::StatusOr<jobs::JobTitle> AdmitRequest(const v1::ProfileRequest& request,
                                              const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::ProfileRequest& request, const jobs::JobRun& run) const override;

  const Means means_;
};

class SanitizeJob final : public jobs::JobKindOf<v1::SanitizeRequest> {
 public:
  explicit SanitizeJob(const Means& means) : JobKindOf(store::JobKind::kSanitize), means_(means) {}

 private:
  jobs::JobTerms TermsOf(const v1::SanitizeRequest& request) const override;
  void SetDevice(const std::string& device_id, v1::SanitizeRequest& request) const override;
  absl::StatusOr<jobs::JobTitle> AdmitRequest(const v1::SanitizeRequest& request,
                                              const std::vector<const v1::Device*>& cards) const override;
  absl::StatusOr<Fill> RunRequest(const v1::SanitizeRequest& request, const jobs::JobRun& run) const override;

  const Means means_;
};

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_PROFILE_JOBS_H_
