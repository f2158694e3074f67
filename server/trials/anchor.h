// What the trials of a job race against: the time of a variant that was timed for this alone.
//
// The leader's own time is the luckiest of many, and that of another day had another clock; a variant as fast as it
// would be given up. The anchor is the fastest variant so far, timed again in this job, and once more every so many
// trials, which also tells whether the device's times have moved meanwhile.
//
// Each card of a job has an anchor of its own, since times of two cards are not compared. The variant that becomes one
// card's is offered to the others: each times it itself, and takes it where it is clearly faster there.
#ifndef ATTUNE_SERVER_TRIALS_ANCHOR_H_
#define ATTUNE_SERVER_TRIALS_ANCHOR_H_

#include <optional>

#include "attune/v1/trial.pb.h"
#include "attune/worker/v1/worker.pb.h"

namespace attune::trials {

// One thread.
class Anchor {
 public:
  static constexpr int kEvery = 20;  // trials
  // By less than this a time has not moved.
  static constexpr double kMoved = 0.01;

  // A trial of this job, or of another day, whose variant becomes the anchor when it is clearly faster: `candidate`
  // ran. Whether it has become so.
  bool Note(const v1::Timing& timing, const worker::v1::Candidate& candidate);
  // What has become another card's anchor.
  void Offer(const worker::v1::Candidate& candidate) { offered_ = candidate; }
  // Whom to time now, for itself; nullptr: nobody.
  const worker::v1::Candidate* Due() const;
  // What that took; nullopt: it could not be timed, and nobody is given up until the next that can.
  void Timed(const std::optional<v1::Timing>& timing);

  // The upper end of its interval; 0: none.
  double YardstickUs() const;
  // That it was timed at; 0: not known.
  int sm_clock_mhz() const { return timing_.sm_clock_mhz(); }
  // By how much its time has moved in the job, at most, as a part of it.
  double moved() const { return moved_; }

 private:
  void TimedOffered(const std::optional<v1::Timing>& timing);

  std::optional<worker::v1::Candidate> candidate_;
  v1::Timing timing_;                             // of candidate_; without median: not timed yet
  double chosen_for_us_ = 0;                      // the lower end of the time that candidate_ was chosen for
  std::optional<worker::v1::Candidate> offered_;  // not timed here yet
  int since_ = 0;                                 // trials
  bool due_ = false;
  double moved_ = 0;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_ANCHOR_H_
