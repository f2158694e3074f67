// Who plays off and who is served afterwards: pure functions over trials.
//
// The rules: nothing contended promotes; a challenger replaces the incumbent only when their paired rounds say FASTER;
// otherwise the incumbent is retained, so that answers do not flip from night to night. Ties are those that are the
// SAME.
#ifndef ATTUNE_SERVER_PROMOTION_PROMOTION_H_
#define ATTUNE_SERVER_PROMOTION_PROMOTION_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/measure/paired_rounds.h"

namespace attune::promotion {

// The best `size` trials whose intervals begin below `near` times the end of the leader's, best first, each code once;
// and besides `incumbent` and `others`, those that were right and timed, in front of their duplicates.
std::vector<size_t> PickContestants(const std::map<size_t, v1::Trial>& trials, size_t size,
                                    std::optional<size_t> incumbent, double near,
                                    const std::vector<size_t>& others = {});

// What is known of the served variant before the decision.
struct IncumbentState {
  bool exists = false;
  std::optional<size_t> contestant;  // its place among the contestants; without one it cannot be timed any more
  bool stale = false;                // it was promoted under other dependencies
  std::string absence;               // why it is no contestant
  bool pinned = false;               // a contestant is then retained, however fast the others are
};

struct Decision {
  std::optional<size_t> best;  // to be served: the incumbent, or a challenger; nullopt when nothing can be
  bool promote = false;        // whether that takes a promotion
  std::vector<size_t> ties;    // other contestants that are the SAME
  std::string why;             // a sentence
};

// Of one play-off and its rounds. A challenger must also be at least `least_speedup` times as fast as the incumbent.
Decision Decide(absl::Span<const v1::Trial> contestants, const measure::PairedRounds& rounds,
                const IncumbentState& standing, double least_speedup);

// To serve the contestant `pinned`, which is right and timed, whatever its time.
Decision Pin(absl::Span<const v1::Trial> contestants, const measure::PairedRounds& rounds,
             const IncumbentState& standing, size_t pinned);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_PROMOTION_H_
