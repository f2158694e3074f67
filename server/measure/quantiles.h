// How samples are spread.
#ifndef ATTUNE_SERVER_MEASURE_QUANTILES_H_
#define ATTUNE_SERVER_MEASURE_QUANTILES_H_

#include <vector>

#include "attune/v1/trial.pb.h"

namespace attune::measure {

inline constexpr int kQuantiles = 33;

// Sets `timing`'s quantiles to those of `us`: the i-th is what i / 32 of the way from the least to the greatest sample
// is, interpolated linearly (Hyndman and Fan, Sample quantiles in statistical packages, 1996, definition 7). None of no
// samples.
void SetQuantiles(std::vector<double> us, v1::Timing& timing);

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_QUANTILES_H_
