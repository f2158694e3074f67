// Inputs of 8-bit K and V: elements and scales.
#ifndef ATTUNE_SERVER_VERIFY_CACHE_INPUTS_H_
#define ATTUNE_SERVER_VERIFY_CACHE_INPUTS_H_

#include <cstdint>
#include <vector>

#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {

// How one KV head of one sequence is drawn. Elements are normal deviates of deviation `spread`, a power of two. Its
// keys or values are then about 1 / `gain` as large as 16-bit ones; `gain` is a power of two too, at least 1.
struct HeadScale {
  float scale, spread, gain;
};

// Of every sequence and KV head, at [sequence * heads_kv + head]. `tensor` is 0 for K and 1 for V.
//
// Scales lie between 2^-15 and 2^5, a factor of 10^6, evenly on a logarithmic scale and over the distributions.
// Elements make up for them as far as the type reaches: with the smallest scales they saturate, with the largest e4m3's
// are mostly subnormal numbers and zeros of both signs. Only what they cannot make up for is left to `gain`.
std::vector<HeadScale> DrawScales(const Problem& problem, Distribution distribution, uint64_t tensor, uint64_t key);

// `rows` of K or V, or of all pages: N(offset, deviation) in units of a head's spread, so that its largest elements are
// as large whatever the deviation. Rows that are no sequence's are NaN.
std::vector<uint8_t> DrawElements(const Problem& problem, const RowMap& map, const std::vector<HeadScale>& heads,
                                  int64_t rows, float offset, float deviation, uint64_t key);

// The scales that make K or V of elements drawn with `deviation`.
std::vector<float> ScalesOf(const std::vector<HeadScale>& heads, float deviation);

// Makes Q's rows larger by the gain of the KV head that they read, so that logits are as large as ever.
void MultiplyQueries(const Problem& problem, const RowMap& map, const std::vector<HeadScale>& heads,
                     std::vector<uint16_t>& q);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_CACHE_INPUTS_H_
