// A candidate bound to the inputs and outputs that it is to run on.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_BOUND_CANDIDATE_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_BOUND_CANDIDATE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/verify/loaded_candidate.h"
#include "server/verify/verify.h"

namespace attune::verify {

class BoundCandidate : public TimedCandidate {
 public:
  explicit BoundCandidate(LoadedCandidate candidate) : candidate_(std::move(candidate)) {}

  // One more runnable, on these buffers, which outlive it. As LoadedCandidate::Bind says.
  absl::Status Add(const device::Bindings& buffers) {
    absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = candidate_.Bind(buffers);
    if (!runnable.ok()) return runnable.status();
    pointers_.push_back(runnable->get());
    owned_.push_back(*std::move(runnable));
    return absl::OkStatus();
  }
  absl::Span<device::Runnable* const> runnables() const override { return pointers_; }
  absl::StatusOr<std::string> ScratchDamage(Inspection* inspection) const override {
    return candidate_.ScratchDamage(inspection);
  }
  absl::Duration checked_run() const override { return checked_run_; }
  void set_checked_run(absl::Duration took) { checked_run_ = took; }
  LoadedCandidate& candidate() { return candidate_; }

 private:
  LoadedCandidate candidate_;  // outlives what is bound to it
  std::vector<std::unique_ptr<device::Runnable>> owned_;
  std::vector<device::Runnable*> pointers_;
  absl::Duration checked_run_;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_BOUND_CANDIDATE_H_
