// What a candidate writes, O and, when the problem asks for it, LSE, and how that is compared with what is right.
#ifndef ATTUNE_SERVER_VERIFY_OUTPUTS_H_
#define ATTUNE_SERVER_VERIFY_OUTPUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

  // Empty, or which output has been written around.
  std::string Damage() const;
  bool SameBits(const OutputSnapshot& other) const;
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
  absl::Status Download(OutputSnapshot& snapshot) const;

 private:
  Outputs(GuardedBuffer o, std::optional<GuardedBuffer> lse) : o_(std::move(o)), lse_(std::move(lse)) {}

  GuardedBuffer o_;
  std::optional<GuardedBuffer> lse_;  // when the problem asks for it
};

// WRONG_RESULT when the outputs are not those of `expected`. Adds to `accuracy`, whose `cases` counts this one already.
Finding CompareWith(const Problem& problem, const OutputSnapshot& outputs, const Case& expected,
                    v1::Accuracy& accuracy);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_OUTPUTS_H_
