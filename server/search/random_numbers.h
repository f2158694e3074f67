// Random numbers that are the same on every platform: the standard's distributions are not.
#ifndef ATTUNE_SERVER_SEARCH_RANDOM_NUMBERS_H_
#define ATTUNE_SERVER_SEARCH_RANDOM_NUMBERS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace attune::search {

class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : engine_(seed) {}

  // In [0, 1).
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  // In 0..n-1, n above 0. Favours small numbers by less than n / 2^64.
  size_t Below(size_t n) { return engine_() % n; }
  // Standard normal (Box and Muller).
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * 3.14159265358979323846 * Uniform());
  }
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_RANDOM_NUMBERS_H_
