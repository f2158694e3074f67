#include "server/base/thinned.h"

#include <algorithm>

namespace attune {

std::vector<size_t> Thinned(size_t size, size_t most) {
  std::vector<size_t> kept;
  const size_t head = std::min(size, most / 2);
  for (size_t i = 0; i < head; ++i) kept.push_back(i);
  const size_t spaced = std::max<size_t>(most - head, 1);
  const size_t step = std::max<size_t>(1, (size - head + spaced - 1) / spaced);
  for (size_t i = head; i < size; i += step) kept.push_back(i);
  return kept;
}

}  // namespace attune
