// Whether a search that says how sure it is of its best is right as often as it says.
#ifndef ATTUNE_CLIENT_REPLAY_CALIBRATION_H_
#define ATTUNE_CLIENT_REPLAY_CALIBRATION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/recorded_space.h"

namespace attune::replay {

// Runs that ended because they were sure enough.
struct Calibration {
  double stated = 0;  // least confidence
  size_t runs = 0;    // of all
  size_t sure = 0;    // of these, that ended sure
  size_t right = 0;   // of those, whose best was within what they claimed
  double tried = 0;   // share of the space that those tried, mean
};

// GUIDED on every space with every seed, until it is 80, 95 (as with standard effort) and 99.5 % sure (full), but with
// `limit`, a share of the space, for its trials.
absl::StatusOr<std::vector<Calibration>> Calibrate(const std::vector<RecordedSpace>& spaces, int seeds, double limit);

std::string Markdown(const std::vector<Calibration>& calibrations);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_CALIBRATION_H_
