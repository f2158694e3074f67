#include "server/promotion/energy.h"

#include "absl/strings/str_cat.h"
#include "proto/attune/objective.h"

namespace attune::promotion {

absl::Status CheckCountsEnergy(v1::Objective objective, bool energy, const std::vector<const v1::Device*>& cards) {
  const bool by_energy = IsByEnergy(objective);
  if (!energy && !by_energy) return absl::OkStatus();
  for (const v1::Device* card : cards) {
    if (card->counts_energy()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(by_energy ? absl::StrCat("objective is ", v1::Objective_Name(objective)) : "energy is true",
                     ", and ", card->id(), " (", card->model(), ") does not count its energy; allowed: ",
                     by_energy ? "OBJECTIVE_TIME" : "false", ", or a device whose energy NVML counts"));
  }
  return absl::OkStatus();
}

}  // namespace attune::promotion
