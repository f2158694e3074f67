// Whether another process disturbs what is measured on a device. Holding a context does not: an idle notebook or an
// inference server between two requests takes no time from anybody.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_CONTENTION_H_
#define ATTUNE_SERVER_DEVICE_CUDA_CONTENTION_H_

#include "absl/types/span.h"
#include "server/device/cuda/nvml_api.h"

namespace attune::device::cuda {

// `processes` hold contexts on the device, ours among them; `samples` say which were computing lately (NVML, a sample a
// process and period). `self` is our process id. NVML gives the host's ids, which in a container are not ours: when
// `self` is not among `processes`, one busy process is taken for this one.
bool AnotherComputes(absl::Span<const NvmlProcessInfo> processes, absl::Span<const NvmlProcessUtilization> samples,
                     unsigned self);

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_CONTENTION_H_
