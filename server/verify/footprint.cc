#include "server/verify/footprint.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

std::string GiB(double bytes) { return absl::StrFormat("%.1f GiB", bytes / (int64_t{1} << 30)); }

absl::Status TooLarge(const Problem& problem, absl::string_view where, double needed, double there) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s needs at least %s %s to be checked, inputs and results of %d distributions; there are %s: ask "
      "for a smaller batch, fewer heads or shorter sequences",
      ToText(problem), GiB(needed), where, Distributions().size(), GiB(there)));
}

}  // namespace

Footprint FootprintOf(const Problem& problem) {
  const Lengths lengths = SequenceLengths(problem);
  const double q_elements = static_cast<double>(problem.heads_q * problem.head_dim) *  //
                            static_cast<double>(lengths.total_q());
  const double kv_elements =
      static_cast<double>(problem.heads_kv * problem.head_dim) * static_cast<double>(lengths.total_kv());
  const auto element = static_cast<double>(DTypeBytes(problem.dtype));
  const auto kv_element = static_cast<double>(DTypeBytes(KvDType(problem)));
  const double inputs = element * q_elements + 2 * kv_element * kv_elements;
  const auto cases = static_cast<double>(Distributions().size());
  Footprint footprint;
  footprint.device = cases * inputs + (element + sizeof(float)) * q_elements;  // O and the reference's O
  // One case more on the host: what CheckTimed replaces inputs by.
  footprint.host = (cases + 1) * (inputs + sizeof(float) * q_elements) + 2 * element * q_elements;  // O of both runs
  return footprint;
}

absl::Status CheckFits(const Problem& problem, const v1::Device& device, double host_bytes) {
  const Footprint needed = FootprintOf(problem);
  const auto device_bytes = static_cast<double>(device.memory_bytes());
  if (device.warp_size() == 1) {  // a CPU
    const double there = host_bytes > 0 ? host_bytes : device_bytes;
    if (there > 0 && needed.device + needed.host > there) {
      return TooLarge(problem, absl::StrFormat("of %s's memory", device.id()), needed.device + needed.host, there);
    }
    return absl::OkStatus();
  }
  if (device_bytes > 0 && needed.device > device_bytes) {
    return TooLarge(problem, absl::StrFormat("of %s's memory", device.id()), needed.device, device_bytes);
  }
  if (host_bytes > 0 && needed.host > host_bytes) {
    return TooLarge(problem, "of the host's memory", needed.host, host_bytes);
  }
  return absl::OkStatus();
}

double HostBytes() {
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max(0.0, pages * page_bytes);
}

}  // namespace attune::verify
