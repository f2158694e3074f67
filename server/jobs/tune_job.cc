#include "server/jobs/tune_job.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "server/base/reason.h"
#include "server/base/seed.h"
#include "server/catalog/families.h"
#include "server/space/space.h"
#include "server/trials/tuning_key.h"
#include "server/verify/footprint.h"

namespace attune::jobs {
namespace {

// Whether some family of those named, or of all, applies; a name that no family has is a mistake.
absl::Status CheckFamilies(const std::vector<std::string>& wanted, const Problem& problem, const v1::Device& device,
                           const catalog::Host& host) {
  const auto families = catalog::FamiliesFor(host.families, device.backend(), family::v1::ROLE_SEARCH, wanted);
  std::vector<std::string> reasons;
  for (const std::string& name : wanted) {
    if (std::none_of(families.begin(), families.end(), [&](const auto& family) { return family->name() == name; })) {
      reasons.push_back(absl::StrCat(name, ": there is no such family for ", device.id()));
    }
  }
  if (!reasons.empty()) return absl::FailedPreconditionError(absl::StrJoin(reasons, "; "));
  for (const std::shared_ptr<const space::Family>& family : families) {
    absl::Status applies = space::Applies(*family, problem, device);
    if (applies.ok()) return applies;
    reasons.push_back(absl::StrCat(family->name(), ": ", applies.message()));
  }
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("no kernel family applies to ", ToText(problem), " on ", device.id(), ": ",
                                     reasons.empty() ? "there is none" : absl::StrJoin(reasons, "; "))),
                    "INFEASIBLE");
}

}  // namespace

JobTerms TuneJob::TermsOf(const v1::TuneRequest& request) const {
  JobTerms terms;
  terms.device = request.device_id();
  terms.priority = request.background() ? trials::Priority::kBackground : trials::Priority::kInteractive;
  if (request.on_miss()) terms.priority = trials::Priority::kIdle;
  return terms;
}

void TuneJob::SetDevice(const std::string& device_id, v1::TuneRequest& request) const {
  request.set_device_id(device_id);
}

v1::TuneRequest TuneJob::Canonical(v1::TuneRequest request) const {
  std::sort(request.mutable_families()->begin(), request.mutable_families()->end());
  return request;
}

absl::StatusOr<JobTitle> TuneJob::AdmitRequest(const v1::TuneRequest& request,
                                               const std::vector<const v1::Device*>& cards) const {
  const v1::Device& device = *cards.front();
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  const std::vector<std::string> wanted(request.families().begin(), request.families().end());
  if (absl::Status status = CheckFamilies(wanted, *problem, device, host_); !status.ok()) return status;
  if (absl::Status fits = verify::CheckFits(*problem, device, verify::HostBytes()); !fits.ok()) return fits;
  return JobTitle{absl::StrCat("tune ", request.on_miss() ? "on a miss " : "", ToText(*problem), " on ", device.id()),
                  ToText(*problem)};
}

absl::StatusOr<JobKind::Fill> TuneJob::RunRequest(const v1::TuneRequest& request, const JobRun& run) const {
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  absl::StatusOr<catalog::TuningKey> tuning_key =
      trials::MakeTuningKey(*problem, run.slot.device(), request.policy(), host_);
  if (!tuning_key.ok()) return tuning_key.status();
  search::SearchSpec spec;
  spec.tuning_key = *std::move(tuning_key);
  spec.families = {request.families().begin(), request.families().end()};
  spec.strategy = request.strategy();
  spec.seed = SeedFrom(request.request_id().empty() ? run.job.name : request.request_id());
  spec.retry_known = request.retry_known();
  spec.ignore_advice = request.ignore_advice();
  if (request.on_miss()) spec.seeds = tuner_.SeedsFor(spec.tuning_key);
  absl::StatusOr<TuneOutcome> outcome = tuner_.Tune(spec, run.slot, run.job);
  if (!outcome.ok()) return outcome.status();
  return [result = std::move(outcome->result)](v1::Operation& operation) {
    *operation.mutable_tune() = result;
    return absl::OkStatus();
  };
}

}  // namespace attune::jobs
