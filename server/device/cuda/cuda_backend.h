// CUDA on this host: the Driver API, NVRTC and NVML, each opened at run time if it is there.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_CUDA_BACKEND_H_
#define ATTUNE_SERVER_DEVICE_CUDA_CUDA_BACKEND_H_

#include <memory>
#include <string>

#include "server/device/device.h"

namespace attune::device {

// `emulate`: see HostBackends. Nothing is initialized before it is needed: OpenCompiler asks the driver for its version
// and no more, so that compile workers hold no device.
std::unique_ptr<Backend> MakeCudaBackend(const std::string& emulate);

}  // namespace attune::device

#endif  // ATTUNE_SERVER_DEVICE_CUDA_CUDA_BACKEND_H_
