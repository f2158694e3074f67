// What recordings tell of each other.
#ifndef ATTUNE_CLIENT_REPLAY_WARM_H_
#define ATTUNE_CLIENT_REPLAY_WARM_H_

#include <vector>

#include "client/replay/recorded_space.h"

namespace attune::replay {

enum class TunedWhere {
  kHere,            // on this card's class: served
  kBeforeShipping,  // in the tables of a fresh install
};

// Gives spaces[i], that of recordings[i], the trials of the others as neighbours, where the daemon would learn from
// them (search::LearningField): near, and of the same families' same sources. Of what was tuned before shipping those
// that a table has (catalog::LearnedOf), on the same model of device. Spaces beyond the recordings stay as they are.
void Warm(const std::vector<v1::Recording>& recordings, TunedWhere where, std::vector<RecordedSpace>& spaces);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_WARM_H_
