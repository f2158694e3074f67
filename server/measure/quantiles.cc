#include "server/measure/quantiles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attune::measure {

void SetQuantiles(std::vector<double> us, v1::Timing& timing) {
  timing.clear_quantiles_us();
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  for (int i = 0; i < kQuantiles; ++i) {
    const double place = static_cast<double>(us.size() - 1) * i / (kQuantiles - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, us.size() - 1);
    timing.add_quantiles_us(static_cast<float>(std::lerp(us[below], us[above], place - static_cast<double>(below))));
  }
}

}  // namespace attune::measure
