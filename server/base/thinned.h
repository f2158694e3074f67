// Which of many ordered things are looked at.
#ifndef ATTUNE_SERVER_BASE_THINNED_H_
#define ATTUNE_SERVER_BASE_THINNED_H_

#include <cstddef>
#include <vector>

namespace attune {

// At most `most` of 0..size-1: half of them the first one by one, where it matters, then evenly spaced ones.
std::vector<size_t> Thinned(size_t size, size_t most);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_THINNED_H_
