// A sweep's progress: that of the problem at hand, and of the sweep as a whole.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PROGRESS_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PROGRESS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "server/base/clock.h"
#include "server/sweep/sweep_pace.h"
#include "server/trials/progress.h"

namespace attune::sweep {

// Thread-safe but for Begin and End, which come while no problem is worked on.
class SweepProgress final : public trials::Progress {
 public:
  // `operation` outlives it. `done`: before this run, by an earlier process.
  SweepProgress(trials::Progress& operation, int64_t problems, int64_t done, Clock clock)
      : operation_(operation), pace_(problems, done), clock_(std::move(clock)) {}

  // A problem begins: nothing of it is done yet.
  void Begin(const std::string& problem_text);
  void End();

  // Problems done and the time left are the sweep's, whatever a problem says of itself.
  void Change(absl::FunctionRef<void(v1::OperationProgress&)> change) override;
  // The message names the problem.
  void SetPhase(v1::OperationProgress::Phase phase, const std::string& message) override;

 private:
  trials::Progress& operation_;
  SweepPace pace_;
  const Clock clock_;
  std::string problem_text_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PROGRESS_H_
