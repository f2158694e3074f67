// A device with its context, its one in-order queue, and what is made on it.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_DEVICE_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/device/opencl/opencl_api.h"
#include "server/device/opencl/opencl_info.h"

namespace attune::device::opencl {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::shared_ptr<const Api> api, const HostDevice& device);

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_DEVICE_H_
