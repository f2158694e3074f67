// Right results in wrong places: a poison that no kernel can tell from what an earlier run has left.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_RIGHT_POISON_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_RIGHT_POISON_H_

#include <optional>
#include <utility>

#include "absl/random/bit_gen_ref.h"
#include "absl/status/status.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/inspection.h"
#include "server/verify/outputs.h"
#include "server/verify/verify.h"

namespace attune::verify {

class RightPoison {
 public:
  // With an `inspection`, which may be null and outlives this otherwise, the results are kept on the device, too.
  // `right`: those of an earlier poison of the same results.
  RightPoison(device::Device& device, Inspection* inspection, std::optional<RightOutput> right)
      : device_(device), inspection_(inspection), right_(std::move(right)) {}

  // Rotates the results that are right, those of `exact` whenever this is called, by a number of elements drawn from
  // `random`.
  absl::Status Plant(const Problem& problem, const HostResult& exact, absl::BitGenRef random, Outputs& outputs);
  // What is on the device may have been damaged: the next call puts it there again.
  void Repair() { on_device_.reset(); }
  // What is on the host; nothing can be planted afterwards.
  std::optional<RightOutput> Release() && { return std::move(right_); }

 private:
  device::Device& device_;
  Inspection* const inspection_;
  std::optional<RightOutput> right_;        // once it was needed
  std::optional<GuardedBuffer> on_device_;  // its O
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_RIGHT_POISON_H_
