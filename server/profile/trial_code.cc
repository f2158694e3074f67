#include "server/profile/trial_code.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/trials/store_wait.h"

namespace attune::profile {

absl::StatusOr<v1::Trial> ReadTrial(const std::string& name, store::Store& store, const trials::Job& job) {
  return trials::ReadFor(job, [&] { return store.GetTrial(name); });
}

absl::StatusOr<Target> TargetOf(const v1::Trial& trial, const v1::Device& device, store::Store& store,
                                const trials::Job& job) {
  const absl::StatusOr<std::string> code =
      trials::ReadFor(job, [&] { return store.ReadArtifact(trial.artifact_sha256()); });
  if (absl::IsNotFound(code.status()) || absl::IsDataLoss(code.status())) {
    return absl::NotFoundError(absl::StrCat("the code of ", trial.name(), " is no longer stored: ",
                                            code.status().message(), "; have the variant tried again (attune retry)"));
  }
  if (!code.ok()) return code.status();
  Target target;
  target.device = device;
  *target.job.mutable_problem() = trial.problem();
  target.job.mutable_candidate()->set_artifact(*code);
  *target.job.mutable_candidate()->mutable_recipe() = trial.recipe();
  return target;
}

}  // namespace attune::profile
