// Spaces drawn at random, with what makes real ones hard: parameters that matter only together, rules that leave holes,
// variants that fail, steps (waves), noise. The same seed draws the same space.
#ifndef ATTUNE_CLIENT_REPLAY_SYNTHETIC_SPACE_H_
#define ATTUNE_CLIENT_REPLAY_SYNTHETIC_SPACE_H_

#include <cstddef>
#include <cstdint>

#include "client/replay/recorded_space.h"

namespace attune::replay {

struct SyntheticOptions {
  uint64_t seed = 1;
  size_t parameters = 7;
  size_t values = 4;      // of each parameter, at most; at least 2
  double feasible = 0.4;  // share of the product that rules leave, about
  double failing = 0.15;  // share of the variants that fail, about
  double noise = 0.005;   // of ln(time)
  double shape = 0;       // 0: the space itself; else a near problem's, whose effects differ by about this much
};
RecordedSpace SyntheticSpace(const SyntheticOptions& options);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_SYNTHETIC_SPACE_H_
