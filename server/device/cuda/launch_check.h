// Whether a device can run a launch at all, asked before it is tried.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_LAUNCH_CHECK_H_
#define ATTUNE_SERVER_DEVICE_CUDA_LAUNCH_CHECK_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "server/device/cuda/driver_api.h"

namespace attune::device::cuda {

// Grid, block and cluster alone: InvalidArgument when a dimension is below 1 or a cluster does not divide the grid,
// FailedPrecondition when one is above what the device takes.
absl::Status CheckDimensions(const v1::Device& limits, const v1::KernelLaunch& launch);

// FailedPrecondition when not even one block of `function`, or one cluster, can be resident. Allows the function its
// dynamic shared memory and its cluster size. `config` is the driver's form of `launch`.
absl::Status MakeResident(const DriverApi& api, const v1::Device& limits, FunctionHandle function,
                          const v1::KernelLaunch& launch, const LaunchConfig& config);

// InvalidArgument unless the kernel's parameters have the sizes of the recipe's arguments: the driver would read past
// them. Drivers before CUDA 12.4 cannot say.
absl::Status CheckParameters(const DriverApi& api, FunctionHandle function, const v1::KernelLaunch& launch);

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_LAUNCH_CHECK_H_
