// A play-off's samples in pairs, and what they say: a contestant against another, by rounds and cycles.
#ifndef ATTUNE_SERVER_MEASURE_PAIRED_ROUNDS_H_
#define ATTUNE_SERVER_MEASURE_PAIRED_ROUNDS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "server/measure/measure.h"

namespace attune::measure {

// What a play-off says of a contestant against another. UNCLEAR: neither, which is no tie.
enum class Answer { kUnclear, kFaster, kSame, kSlower };

// How much faster one is: 0.02 is 2 %. The ends are those of the interval of 95 % or more.
struct Gain {
  double low = 0;
  double middle = 0;
  double high = 0;
  Answer answer = Answer::kUnclear;
};

// A round is a sample of each contestant, so that what the device does between two rounds is the same for all: the
// statistic of a cycle is the median of the logarithms of a round's two times. A cycle has code and memory of its own,
// where a variant's times differ by more than its samples do: what decides is the mean of the cycles, with the interval
// of Student's t. How much cycles vary is not taken for less than its own, its rounds, or the middle one of all that
// share an opponent say.
class PairedRounds {
 public:
  static constexpr int kFewestCycles = 3;
  static constexpr int kMostCycles = 10;
  // What a challenger must gain for certain to be FASTER, and between what and minus what it is the SAME.
  static constexpr double kLeastGain = 0.005;
  static constexpr double kSame = 0.01;

  // Times in us by contestant and round, 0 where a sample does not count. Who takes no part has no rounds.
  using Cycle = std::vector<std::vector<double>>;

  explicit PairedRounds(size_t contestants) : contestants_(contestants) {}

  void Add(Cycle cycle);
  // No cycle follows: an answer is no longer one of several looks, and needs less to be given.
  void Close() { closed_ = true; }

  size_t contestants() const { return contestants_; }
  int cycles() const { return static_cast<int>(cycles_.size()); }
  int CyclesOf(size_t contestant) const;
  // Of `a` over `b`, in the cycles and rounds that they share. UNCLEAR with fewer than kFewestCycles of three rounds or
  // more.
  Gain Of(size_t a, size_t b) const;
  // A contestant's own time: the mean of its cycles' medians with the interval of 95 %; of one cycle, its median and
  // its range.
  Interval TimeOf(size_t contestant) const;
  // Of `among`, which is not empty: the one that loses to none of the others, as far as the middle of a gain says.
  size_t Fastest(const std::vector<size_t>& among) const;
  // Who takes part in the next cycle: all, until there are kFewestCycles; then those whose answer against `incumbent`,
  // or against the fastest where there is none, is UNCLEAR, and that one. Empty: nobody.
  std::vector<size_t> Next(std::optional<size_t> incumbent) const;

 private:
  // Of b's time over a's, by cycle and round.
  std::vector<std::vector<double>> Logarithms(size_t a, size_t b) const;

  size_t contestants_;
  std::vector<Cycle> cycles_;
  bool closed_ = false;
};

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_PAIRED_ROUNDS_H_
