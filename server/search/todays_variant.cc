#include "server/search/todays_variant.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::search {

absl::StatusOr<space::Variant> TodaysVariant(const v1::Trial& trial, const catalog::TuningKey& tuning_key,
                                             const std::vector<std::shared_ptr<const space::Family>>& families) {
  absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), families);
  if (!variant.ok()) return variant.status();
  if (variant->family->manifest.backend() != tuning_key.device.backend()) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel family ", variant->family->name(), " is not for ", tuning_key.device.id()));
  }
  if (absl::Status status = space::Feasible(*variant, tuning_key.problem, tuning_key.device); !status.ok())
    return status;
  return variant;
}

}  // namespace attune::search
