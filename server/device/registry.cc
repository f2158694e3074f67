// Every GPU API of this build.
#include <memory>
#include <string>
#include <vector>

#include "server/device/cuda/cuda_backend.h"
#include "server/device/device.h"
#include "server/device/opencl/opencl_backend.h"

namespace attune::device {

std::vector<std::unique_ptr<Backend>> HostBackends(const std::string& emulate) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(MakeCudaBackend(emulate));
  backends.push_back(MakeOpenClBackend());
  return backends;
}

}  // namespace attune::device
