// Numbers by counters, so that threads share the work and a seed always means the same data: 16 bits of a mixed counter
// choose among the quantiles of N(0, 1).
#ifndef ATTUNE_SERVER_VERIFY_NORMAL_DEVIATES_H_
#define ATTUNE_SERVER_VERIFY_NORMAL_DEVIATES_H_

#include <cstdint>
#include <vector>

namespace attune::verify {

inline constexpr int kQuantiles = 1 << 16;
// What a counter is multiplied by before it is mixed (2^64 divided by the golden ratio).
inline constexpr uint64_t kCounterStep = 0x9e3779b97f4a7c15u;

// SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", figure 17).
inline uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// kQuantiles of them, rising; the largest is 4.2.
const std::vector<float>& NormalQuantiles();

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_NORMAL_DEVIATES_H_
