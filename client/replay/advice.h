// Whether what `attune explain` advises for a trial, when nothing of its neighbours is known, makes it faster: the
// recorded neighbour knows.
#ifndef ATTUNE_CLIENT_REPLAY_ADVICE_H_
#define ATTUNE_CLIENT_REPLAY_ADVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"
#include "attune/v1/device.pb.h"
#include "client/replay/tuned_problem.h"

namespace attune::replay {

struct AdviceTally {
  size_t trials = 0;      // explained
  size_t silent = 0;      // of these, without advice that names a parameter
  size_t unrecorded = 0;  // advised towards a variant that was not recorded, or failed
  size_t faster = 0;      // advised towards one that is faster,
  size_t slower = 0;      // or not: their medians
  struct OfChange {
    size_t faster = 0, slower = 0, unrecorded = 0;
  };
  std::map<std::string, OfChange> by_change;  // "raise KV_SPLITS"
};

// Explains `trials` rows with a time, drawn from all recordings by `seed`. `families` are those that were recorded:
// FailedPrecondition where a recording's sources were others. `device` is one of the class that they were recorded on.
absl::StatusOr<AdviceTally> TryAdvice(const std::vector<v1::Recording>& recordings, const Families& families,
                                      const attune::v1::Device& device, size_t trials, uint64_t seed);

std::string Markdown(const AdviceTally& tally);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_ADVICE_H_
