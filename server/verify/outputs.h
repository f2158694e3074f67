// What a candidate writes, O and, when the problem asks for it, LSE, and how that is compared with what is right.
#ifndef ATTUNE_SERVER_VERIFY_OUTPUTS_H_
#define ATTUNE_SERVER_VERIFY_OUTPUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/random/bit_gen_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"
#include "server/verify/case.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/verify.h"

namespace attune::verify {

// Outputs and their zones on the host; `lse` is empty when the problem has none.
struct OutputSnapshot {
  GuardedBuffer::Snapshot o, lse;
  // In place of `o`, when the inspector has found it right and nothing written around it.
  struct Right {
    uint64_t digest;
    double max_abs_error;
  };
  std::optional<Right> right = {};

  // Empty, or which output has been written around.
  std::string Damage() const;
  bool SameBits(const OutputSnapshot& other) const;
};

// Of what a snapshot without `right` holds, under an inspection's key.
struct OutputDigests {
  uint64_t o, lse;

  OutputDigests(const OutputSnapshot& snapshot, const Inspection& inspection);
};

// The results of a case as a kernel writes them: planted away from where they belong they are a poison that cannot be
// told from left-over results.
struct RightOutput {
  std::vector<uint16_t> o;
  std::vector<float> lse;

  RightOutput(const Problem& problem, const HostResult& exact);
};

// Must not outlive its device.
class Outputs {
 public:
  static absl::StatusOr<Outputs> Create(device::Device& device, const Problem& problem);

  device::Bindings BoundTo(const InputBuffers& inputs) const;
  absl::Status Fill(std::byte value);
  absl::Status FillZones();
  // Plants `right`, every value `shift` places before its own (1 <= shift < elements of O), where it is wrong.
  absl::Status Plant(const RightOutput& right, size_t shift);
  // The same, of what lies on the device: O of RightOutput, and its LSE.
  absl::Status PlantFrom(const GuardedBuffer& right_o, const RightOutput& right, size_t shift, Inspection& inspection);
  absl::Status Download(OutputSnapshot& snapshot) const;
  // What is right on the device stays there, but for a block, drawn from `random`, that the host compares too.
  absl::Status Observe(const Problem& problem, const Case& expected, Inspection& inspection, absl::BitGenRef random,
                       OutputSnapshot& snapshot) const;
  // Whether the inspector finds these bits, and nothing written around them.
  absl::StatusOr<bool> Hold(const OutputDigests& digests, Inspection& inspection) const;

 private:
  absl::Status PlantLse(const RightOutput& right, size_t shift);
  absl::StatusOr<std::optional<OutputSnapshot::Right>> FindRight(const Problem& problem, const Case& expected,
                                                                 Inspection& inspection, absl::BitGenRef random) const;
  // Of a block of O.
  absl::StatusOr<bool> HostFindsRight(const Problem& problem, const Case& expected, absl::BitGenRef random) const;

  Outputs(GuardedBuffer o, std::optional<GuardedBuffer> lse) : o_(std::move(o)), lse_(std::move(lse)) {}

  GuardedBuffer o_;
  std::optional<GuardedBuffer> lse_;  // when the problem asks for it
};

// WRONG_RESULT when the outputs are not those of `expected`. Adds to `accuracy`, whose `cases` counts this one already.
Finding CompareWith(const Problem& problem, const OutputSnapshot& outputs, const Case& expected,
                    v1::Accuracy& accuracy);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_OUTPUTS_H_
