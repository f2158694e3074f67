// What a job says of itself while it runs.
#ifndef ATTUNE_SERVER_TRIALS_PROGRESS_H_
#define ATTUNE_SERVER_TRIALS_PROGRESS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "attune/v1/service.pb.h"

namespace attune::trials {

// Thread-safe.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void Change(absl::FunctionRef<void(v1::OperationProgress&)> change) = 0;
  // What is done from now on.
  virtual void SetPhase(v1::OperationProgress::Phase phase, const std::string& message) {
    Change([&](v1::OperationProgress& progress) {
      progress.set_phase(phase);
      progress.set_message(message);
    });
  }
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_PROGRESS_H_
