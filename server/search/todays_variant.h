// A trial's variant, as it can be tried again today.
#ifndef ATTUNE_SERVER_SEARCH_TODAYS_VARIANT_H_
#define ATTUNE_SERVER_SEARCH_TODAYS_VARIANT_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/trial.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/space/space.h"

namespace attune::search {

// As today's families have it, feasible for the tuning_key; otherwise why not.
absl::StatusOr<space::Variant> TodaysVariant(const v1::Trial& trial, const catalog::TuningKey& tuning_key,
                                             const std::vector<std::shared_ptr<const space::Family>>& families);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_TODAYS_VARIANT_H_
