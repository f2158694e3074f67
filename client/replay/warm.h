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
// them (search::LearningField): near, and of the same families' same sources. What was tuned before
// shipping says so on the same model of device: of a neighbour's rows a search learns from those alone that a table has
// (search::PriorOf). Spaces beyond the recordings stay as they are.
void Warm(const std::vector<v1::Recording>& recordings, TunedWhere where, std::vector<RecordedSpace>& spaces);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_WARM_H_
