// One variant's samples: which of them count, and what they say together.
#ifndef ATTUNE_SERVER_MEASURE_SAMPLE_SET_H_
#define ATTUNE_SERVER_MEASURE_SAMPLE_SET_H_

#include <cstddef>
#include <vector>

#include "attune/v1/trial.pb.h"
#include "server/measure/measure.h"

namespace attune::measure {

// Keeps every sample and judges them anew with each one, so that samples taken while the clock was still rising are
// thrown away as soon as a higher clock has been seen.
//
// A clock that stays below the floor for kSustained samples in a row, whatever the pauses between them, is the clock
// that the device can sustain for this variant: the round starts over with those samples.
//
// Contended samples do not count while they are fewer than the others; otherwise the whole timing is contended.
class SampleSet {
 public:
  static constexpr int kSustained = 10;

  explicit SampleSet(const Options& options);

  // False when the sample was taken below the clock floor: time for a pause.
  bool Add(const Timer::Sample& sample);

  int accepted() const { return static_cast<int>(accepted_.size()); }
  int taken() const { return taken_; }
  const Interval& interval() const { return interval_; }
  // The interval is narrow enough, judged at 7, 11, 17, 25, 37, 55 samples alone, and the more strictly the fewer they
  // are: who looks after each sample stops at the one at which chance has it narrow.
  bool settled() const { return narrow_; }
  // Each sample taken, in us; 0 where it does not count.
  std::vector<double> ByOrder() const;
  v1::Timing ToTiming() const;

 private:
  bool BelowFloor(const Timer::Sample& sample) const;
  void Judge();
  // Of samples in the order they were taken, wider by the clock's step: they may all have been rounded the same way.
  Interval IntervalOf(const std::vector<double>& us) const;
  // At the last look that there was.
  bool IsNarrow(const std::vector<double>& us) const;

  const Options& options_;
  size_t before_round_ = 0;              // samples taken before it began
  std::vector<Timer::Sample> round_;     // since the round began
  std::vector<Timer::Sample> accepted_;  // of those, the ones that count
  Interval interval_;                    // of accepted_
  bool narrow_ = false;                  // it is
  bool without_contended_ = false;       // these are not among accepted_
  int taken_ = 0;
  int highest_clock_mhz_ = 0;  // of the round
  int below_in_a_row_ = 0;
};

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_SAMPLE_SET_H_
