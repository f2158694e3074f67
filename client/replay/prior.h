// The prior that a fresh install answers from (server/catalog/prior), from recordings.
#ifndef ATTUNE_CLIENT_REPLAY_PRIOR_H_
#define ATTUNE_CLIENT_REPLAY_PRIOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"
#include "attune/v1/device.pb.h"
#include "server/catalog/prior/shipped_prior.h"

namespace attune::replay {

// Of each problem, in the order of their texts, those of the family's variants in its first recording that others learn
// (catalog::LearnedOf).
// InvalidArgument where CheckAreOfOne refuses the recordings, they are of another model than `device`, or none has a
// time of the family.
absl::StatusOr<catalog::PriorTable> LearnPrior(const std::vector<v1::Recording>& recordings, const std::string& family,
                                               const attune::v1::Device& device);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_PRIOR_H_
