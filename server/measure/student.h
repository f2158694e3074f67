// Quantiles of Student's t distribution.
#ifndef ATTUNE_SERVER_MEASURE_STUDENT_H_
#define ATTUNE_SERVER_MEASURE_STUDENT_H_

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace attune::measure {

enum class Tail { k0_5, k2_5, k4 };  // what lies beyond it, in per cent

// `freedom` is above 0; from 10 on the value for 10 is given, which is larger than the true one.
inline double StudentQuantile(Tail tail, size_t freedom) {
  static constexpr double k05[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169};
  static constexpr double k25[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  static constexpr double k40[] = {7.916, 3.320, 2.605, 2.333, 2.191, 2.104, 2.046, 2.004, 1.973, 1.948};
  const size_t place = std::min(freedom, std::size(k25)) - 1;
  switch (tail) {
    case Tail::k0_5:
      return k05[place];
    case Tail::k2_5:
      return k25[place];
    case Tail::k4:
      return k40[place];
  }
  return k05[place];
}

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_STUDENT_H_
