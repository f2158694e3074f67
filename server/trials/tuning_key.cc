#include "server/trials/tuning_key.h"

#include <string>
#include <utility>

#include "server/verify/footprint.h"

namespace attune::trials {

absl::StatusOr<catalog::TuningKey> MakeTuningKey(const Problem& problem, const v1::Device& device, v1::Policy policy,
                                                 const catalog::Host& host) {
  if (absl::Status fits = verify::CheckFits(problem, device, verify::HostBytes()); !fits.ok()) return fits;
  absl::StatusOr<std::string> toolchain = catalog::Toolchain(host, device.backend());
  if (!toolchain.ok()) return toolchain.status();
  return catalog::TuningKey{problem, ToText(problem), device, policy, *std::move(toolchain)};
}

}  // namespace attune::trials
