// What a problem's re-timings say of what is served: slower or faster than it was, since when, and what changed then.
#ifndef ATTUNE_SERVER_SWEEP_TREND_H_
#define ATTUNE_SERVER_SWEEP_TREND_H_

#include <vector>

#include "absl/time/time.h"
#include "attune/v1/trend.pb.h"
#include "server/store/store.h"

namespace attune::sweep {

// What of the past counts.
struct TrendTerms {
  absl::Time begin = absl::InfinitePast();
  absl::Time end = absl::InfiniteFuture();
  double regression = 0.02;
  int points = 0;  // of the curve, at most; 0: none
};

// One night's re-timings: those of one job, or for lack of one that follow each other. Oldest first.
using Night = std::vector<v1::Retiming>;
std::vector<Night> NightsOf(std::vector<v1::Retiming> newest_first);

// `history` is all that was served for one problem, class and policy, newest first, `served` one of it;
// `newest_first` are their re-timings in the range of time. What the cycles of a sweep are to a night
// (sweep_outcome.h), all re-timings on the card that timed what is served are here: SAME is the last that says so,
// SLOWER and FASTER are three in a row, from one night or several; one night of SAME does not end two of SLOWER or
// FASTER. A pinned incumbent is compared with its own time, any other with the fastest that no roll-back took out.
v1::Trend TrendOf(const v1::Incumbent& served, const std::vector<v1::Incumbent>& history,
                  const std::vector<v1::Retiming>& newest_first, const TrendTerms& terms);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_TREND_H_
