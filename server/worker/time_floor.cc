#include "server/worker/time_floor.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "server/base/device_profile.h"

namespace attune::worker {
namespace {

// Clocks and bandwidths are published to a few per cent.
constexpr double kMargin = 0.9;

// Whether every key is seen by some query row: only then must all of K and V be read.
bool NeedsEveryKey(const Problem& problem) {
  if (problem.mask == attune::v1::MASK_NONE || problem.mask == attune::v1::MASK_CAUSAL_BOTTOM_RIGHT) return true;
  return problem.mask == attune::v1::MASK_CAUSAL_TOP_LEFT && problem.seq_q >= problem.seq_kv;
}

double InputBytes(const Problem& problem) {
  const double rows = static_cast<double>(problem.heads_q) * static_cast<double>(SequenceLengths(problem).total_q());
  const double element = static_cast<double>(DTypeBytes(problem.dtype));
  return Bytes(problem) - rows * (static_cast<double>(problem.head_dim) * element + (problem.lse ? sizeof(float) : 0));
}

}  // namespace

TimeFloor TimeFloorOf(const Problem& problem, const attune::v1::Device& device, attune::v1::Policy policy,
                      size_t sets) {
  TimeFloor floor;
  if (device.memory_bandwidth_gbs() > 0 && NeedsEveryKey(problem)) {
    // Of each rotation at most one L2 full of inputs is still there from the rotation before.
    const double kept =
        policy == attune::v1::POLICY_COLD ? 0 : static_cast<double>(device.l2_bytes()) / static_cast<double>(sets);
    const double moved = std::max(0.0, InputBytes(problem) - kept);
    floor.bytes_us = moved / static_cast<double>(device.memory_bandwidth_gbs()) / 1e3;
  }
  const std::optional<double> rate = TensorFlopsPerClock(device.compute_capability());
  // Code for an emulated compute capability ("compute_89") runs at the rate of the chip that is really there.
  const bool emulated = !absl::StartsWith(device.target(), "sm_");
  if (rate.has_value() && !emulated && device.compute_units() > 0 && device.sm_clock_mhz() > 0) {
    floor.flops_us = Flops(problem) /
                     (*rate * static_cast<double>(device.compute_units()) * static_cast<double>(device.sm_clock_mhz()));
  }
  return floor;
}

std::string BelowFloor(double us, const Problem& problem, const attune::v1::Device& device, attune::v1::Policy policy,
                       size_t sets) {
  const TimeFloor floor = TimeFloorOf(problem, device, policy, sets);
  const bool moves = floor.bytes_us >= floor.flops_us;
  const double least = std::max(floor.bytes_us, floor.flops_us);
  if (us >= kMargin * least) return "";
  return absl::StrFormat("its time of %.3g us is below the %.3g us that %s takes at the peak rate of %s", us, least,
                         moves ? "reading the inputs" : "the arithmetic", device.model());
}

}  // namespace attune::worker
