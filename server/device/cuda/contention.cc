#include "server/device/cuda/contention.h"

#include <algorithm>
#include <set>

namespace attune::device::cuda {

bool AnotherComputes(absl::Span<const NvmlProcessInfo> processes, absl::Span<const NvmlProcessUtilization> samples,
                     unsigned self) {
  std::set<unsigned> busy;
  for (const NvmlProcessUtilization& sample : samples) {
    if (sample.sm_percent > 0) busy.insert(sample.pid);
  }
  const bool known = std::any_of(processes.begin(), processes.end(),
                                 [self](const NvmlProcessInfo& process) { return process.pid == self; });
  if (known) busy.erase(self);
  return busy.size() > (known ? 0 : 1);
}

}  // namespace attune::device::cuda
