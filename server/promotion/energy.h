// Which devices can say what a run takes in joules.
#ifndef ATTUNE_SERVER_PROMOTION_ENERGY_H_
#define ATTUNE_SERVER_PROMOTION_ENERGY_H_

#include <vector>

#include "absl/status/status.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/search.pb.h"

namespace attune::promotion {

// FailedPrecondition where `objective`, or `energy`, asks for energy and one of the cards counts none.
absl::Status CheckCountsEnergy(v1::Objective objective, bool energy, const std::vector<const v1::Device*>& cards);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_ENERGY_H_
