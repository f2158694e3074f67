// How much slower than its best each problem is with the few variants that `attune portfolio` keeps for all of them.
#ifndef ATTUNE_CLIENT_REPLAY_PORTFOLIO_LOSS_H_
#define ATTUNE_CLIENT_REPLAY_PORTFOLIO_LOSS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"

namespace attune::replay {

// Two tables: of the variants, what the recorded problems lose with the first 1, 2, ... `most` of them; of the
// problems, what each loses, and what it would if the variants had been chosen for the others and it had the one of the
// problem most alike. Chosen as `attune portfolio --tune` does, among the fastest of each problem that are OK.
// InvalidArgument where there are fewer than two recordings, or CheckAreOfOne refuses them.
absl::StatusOr<std::string> TryPortfolio(const std::vector<v1::Recording>& recordings, size_t most);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_PORTFOLIO_LOSS_H_
