// OpenCL on this host: every device of every platform that its loader (libOpenCL.so.1, opened at run time) offers.
// CPU devices count: through PoCL the whole service runs on a machine without a GPU.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_BACKEND_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_BACKEND_H_

#include <memory>

#include "server/device/device.h"

namespace attune::device {

// Opens nothing yet: the first call of one of its functions does.
std::unique_ptr<Backend> MakeOpenClBackend();

}  // namespace attune::device

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_BACKEND_H_
