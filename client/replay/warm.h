// What recordings tell of each other.
#ifndef ATTUNE_CLIENT_REPLAY_WARM_H_
#define ATTUNE_CLIENT_REPLAY_WARM_H_

#include <vector>

#include "client/replay/recorded_space.h"

namespace attune::replay {

// Gives spaces[i], that of recordings[i], the trials of the others as neighbours, where the daemon would learn from
// them (search::LearningField): near, and of the same families' same sources. Spaces beyond the recordings stay as they
// are.
void Warm(const std::vector<v1::Recording>& recordings, std::vector<RecordedSpace>& spaces);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_WARM_H_
