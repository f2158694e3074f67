// How long a sweep will take from here, judged by the problems it has done.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace attune::sweep {

// `now` is by one clock (server/base/clock.h). Not thread-safe.
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

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_
