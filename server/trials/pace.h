// How long a job will take from here, judged by what it has done.
#ifndef ATTUNE_SERVER_TRIALS_PACE_H_
#define ATTUNE_SERVER_TRIALS_PACE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace attune::trials {

// The trials of one problem. Compiling runs beside the device and ahead of it: what was compiled while the device was
// still being prepared passes it in no time and says nothing about the rest, so the time that trials are done in is no
// measure. The slower of the two sides sets the pace.
struct TrialPace {
  int64_t run = 0;           // without those reused
  absl::Duration device;     // that they had the device for, together
  absl::Duration compiling;  // that their codes took to compile, one after the other; cached ones took none
  int compilers = 1;         // at work at once
};

// For `left` more; nullopt while too few have run to tell.
std::optional<absl::Duration> TimeLeft(const TrialPace& pace, int64_t left);

// The problems of a sweep; `now` is by one clock (server/base/clock.h). Not thread-safe.
class SweepPace {
 public:
  // `done`: before this run, by an earlier process.
  SweepPace(int64_t problems, int64_t done) : problems_(problems), done_(done) {}

  void Begin(absl::Duration now) { begun_ = now; }  // the next problem
  void End(absl::Duration now);

  int64_t done() const { return done_; }
  int64_t problems() const { return problems_; }
  // nullopt until one problem was done in this run.
  std::optional<absl::Duration> TimeLeft(absl::Duration now) const;

 private:
  const int64_t problems_;
  int64_t done_;
  int64_t done_here_ = 0;
  absl::Duration spent_;  // on those done here
  absl::Duration begun_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_PACE_H_
