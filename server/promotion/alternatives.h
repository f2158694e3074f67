// Who is served beside the fastest, to those who ask for the best by energy: pure functions over the trials of a
// play-off whose energy was measured.
//
// The rules: the fastest is served as always. Besides it the contestant is kept that takes least energy a run, and the
// one with the least energy-delay product, where that is certainly less than the fastest's: the spans of the one lie
// wholly below those of the other. Otherwise the fastest is the best by this, too, which is kept as an alternative
// without a trial. An alternative stays until the question is asked again, as long as it is what was measured: the same
// code with the same dependencies, on the card that times what is served; and as long as what is served, where its
// energy is known, is not as good. What is pinned is served whatever the objective, and has none.
#ifndef ATTUNE_SERVER_PROMOTION_ALTERNATIVES_H_
#define ATTUNE_SERVER_PROMOTION_ALTERNATIVES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/space/family.h"

namespace attune::promotion {

// A contestant that is certainly better than the fastest, and of these the best.
struct BestBy {
  v1::Objective objective = v1::OBJECTIVE_UNSPECIFIED;
  std::optional<size_t> contestant;  // nullopt: none is
};
// By ENERGY and by EDP; empty where the fastest's own energy is not known.
std::vector<BestBy> ChooseAlternatives(absl::Span<const v1::Trial> contestants, size_t fastest);

// "; tiles:BLOCK=16 has the least energy, 11 mJ a run, 8.3 % less than the fastest"; "; no other has less energy for
// certain".
std::string WordsOf(const BestBy& best, absl::Span<const v1::Trial> contestants, size_t fastest);

// Takes those out of an incumbent's alternatives that today's families do not have, that depend on something that has
// changed, that another card measured, or that are `wrong` (null: none is); all where the incumbent is pinned.
void DropChanged(const catalog::TuningKey& tuning_key,
                 const std::vector<std::shared_ptr<const space::Family>>& families,
                 const std::function<bool(const v1::Trial&)>& wrong, v1::Incumbent& incumbent);

// Of an incumbent's alternatives that were chosen beside another timing or another variant: those that are not
// certainly less than it any more, or have become it, say that it is itself the best; but go where of the others, of
// which some may be `known` besides, one is certainly less than it. All stay where its energy is not known.
void CompareWithFastest(absl::Span<const v1::Trial> known, v1::Incumbent& incumbent);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_ALTERNATIVES_H_
