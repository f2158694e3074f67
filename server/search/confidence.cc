#include "server/search/confidence.h"

#include <cmath>
#include <cstddef>

namespace attune::search {
namespace {

constexpr double kWider = 2;     // than the trees are apart
constexpr double kLeast = 0.08;  // standard deviation of ln(time) of what was not tried, whatever the trees say

}  // namespace

double ConfidenceThatBest(double best_us, const std::vector<bool>& untold, const std::vector<Expectation>& expected) {
  const double limit = std::log(best_us / (1 + kWithin));
  double none = 0;  // ln of the probability
  for (size_t candidate = 0; candidate < untold.size(); ++candidate) {
    if (!untold[candidate]) continue;
    const Expectation& one = expected[candidate];
    const double deviation = std::hypot(kWider * one.deviation, kLeast);
    const double below = std::erfc((one.mean - limit) / deviation / std::sqrt(2.0)) / 2;
    none += std::log1p(-std::fmin(one.ok * below, 1 - 1e-9));
  }
  return std::exp(none);
}

}  // namespace attune::search
