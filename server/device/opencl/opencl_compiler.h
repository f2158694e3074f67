// clBuildProgram as a Compiler. An artifact is the program's binary for one device.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_COMPILER_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_COMPILER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/device/opencl/opencl_api.h"
#include "server/device/opencl/opencl_info.h"

namespace attune::device::opencl {

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompiler(std::shared_ptr<const Api> api, std::vector<HostDevice> devices);

// Builds `program` for `device`; InvalidArgument carries the build log.
absl::Status Build(const Api& api, cl_program program, cl_device_id device, const std::string& options);

// The built program as an artifact.
absl::StatusOr<std::string> Binary(const Api& api, cl_program program);

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_COMPILER_H_
