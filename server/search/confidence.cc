#include "server/search/confidence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attune::search {
namespace {

struct Width {
  double wider = 1;  // than the trees are apart
  double least = 0;  // standard deviation of ln(time) of what was not tried, whatever the trees say
};

constexpr size_t kFew = 80;  // trials, below which all trees may agree on what is wrong
constexpr Width kOfFew = {2, 0.08};
constexpr Width kOfMany = {1, 0.03};

}  // namespace

double ConfidenceThatBest(double best_us, const std::vector<bool>& untold, const std::vector<Expectation>& expected) {
  const double limit = std::log(best_us / (1 + kWithin));
  const auto told = static_cast<size_t>(std::count(untold.begin(), untold.end(), false));
  const Width& width = told < kFew ? kOfFew : kOfMany;
  double none = 0;  // ln of the probability
  for (size_t candidate = 0; candidate < untold.size(); ++candidate) {
    if (!untold[candidate]) continue;
    const Expectation& one = expected[candidate];
    const double deviation = std::hypot(width.wider * one.deviation, width.least);
    const double below = std::erfc((one.mean - limit) / deviation / std::sqrt(2.0)) / 2;
    none += std::log1p(-std::fmin(one.ok * below, 1 - 1e-9));
  }
  return std::exp(none);
}

}  // namespace attune::search
