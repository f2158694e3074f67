// One run of a candidate on outputs and scratch that hold nothing it could have left there.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_POISONED_RUN_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_POISONED_RUN_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/verify/loaded_candidate.h"
#include "server/verify/outputs.h"

namespace attune::verify {

// What outputs and scratch hold before the two runs: NaN, and a number that is nowhere right. They differ, so that a
// run which leaves its outputs alone shows even if the other was right.
inline constexpr std::byte kPoisons[] = {std::byte{0xFF}, std::byte{0x5A}};

// Poisons `outputs`, which `runnable` is bound to, and the candidate's scratch, and runs once. How long the run took by
// the device's events; zero where it has none.
inline absl::StatusOr<absl::Duration> RunPoisoned(device::Device& device, LoadedCandidate& candidate, Outputs& outputs,
                                                  device::Runnable& runnable, std::byte poison) {
  absl::Status status = outputs.Fill(poison);
  status.Update(candidate.PoisonScratch(poison));
  const absl::Duration worked = device.Worked();
  if (status.ok()) status = runnable.Run();
  if (!status.ok()) return status;
  return device.Worked() - worked;
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_POISONED_RUN_H_
