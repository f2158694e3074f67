// What a job says of itself while it runs.
#ifndef ATTUNE_SERVER_TRIALS_PROGRESS_H_
#define ATTUNE_SERVER_TRIALS_PROGRESS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/proto_time.h"

namespace attune::trials {

// Thread-safe.
class Progress {
 public:
  static constexpr int kMostPhases = 64;  // whose beginnings are kept

  virtual ~Progress() = default;
  virtual void Change(absl::FunctionRef<void(v1::OperationProgress&)> change) = 0;
  // It ran so long on cards beside the one that it is said to run on.
  virtual void AddDeviceTime(absl::Duration /*time*/) {}
  // What is done from now on.
  virtual void SetPhase(v1::OperationProgress::Phase phase, const std::string& message) {
    Change([&](v1::OperationProgress& progress) {
      const bool new_phase = progress.phases().empty() || progress.phases().rbegin()->phase() != phase;
      if (new_phase && progress.phases_size() < kMostPhases) {
        v1::PhaseBegin& begin = *progress.add_phases();
        begin.set_phase(phase);
        SetTimestamp(absl::Now(), begin.mutable_time());
      }
      progress.set_phase(phase);
      progress.set_message(message);
    });
  }
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_PROGRESS_H_
