#include "server/sweep/sweep_progress.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "server/base/proto_time.h"

namespace attune::sweep {

void SweepProgress::Begin(const std::string& problem_text) {
  problem_text_ = problem_text;
  pace_.Begin(clock_());
  Change([](v1::OperationProgress& progress) {
    progress.Clear();
    progress.set_phase(v1::OperationProgress::PHASE_ENUMERATE);
  });
}

void SweepProgress::End() { pace_.End(clock_()); }

void SweepProgress::Change(absl::FunctionRef<void(v1::OperationProgress&)> change) {
  operation_.Change([&](v1::OperationProgress& progress) {
    change(progress);
    progress.set_problems_done(pace_.done());
    progress.set_problems_total(pace_.problems());
    if (const std::optional<absl::Duration> left = pace_.TimeLeft(clock_()); left.has_value()) {
      SetDuration(*left, progress.mutable_eta());
    } else {
      progress.clear_eta();
    }
  });
}

void SweepProgress::SetPhase(v1::OperationProgress::Phase phase, const std::string& message) {
  Progress::SetPhase(phase, absl::StrCat(problem_text_, ": ", message));
}

}  // namespace attune::sweep
