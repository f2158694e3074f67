// The OpenCL functions in use, found in libOpenCL.so.1 at run time, and the few helpers that every call needs.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_API_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_API_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::device::opencl {

#define ATTUNE_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)              \
  X(clGetPlatformInfo)             \
  X(clGetDeviceIDs)                \
  X(clGetDeviceInfo)               \
  X(clCreateContext)               \
  X(clReleaseContext)              \
  X(clCreateCommandQueue)          \
  X(clReleaseCommandQueue)         \
  X(clCreateBuffer)                \
  X(clCreateSubBuffer)             \
  X(clReleaseMemObject)            \
  X(clEnqueueWriteBuffer)          \
  X(clEnqueueReadBuffer)           \
  X(clEnqueueFillBuffer)           \
  X(clCreateProgramWithSource)     \
  X(clCreateProgramWithBinary)     \
  X(clBuildProgram)                \
  X(clGetProgramInfo)              \
  X(clGetProgramBuildInfo)         \
  X(clReleaseProgram)              \
  X(clCreateKernel)                \
  X(clSetKernelArg)                \
  X(clGetKernelInfo)               \
  X(clGetKernelWorkGroupInfo)      \
  X(clReleaseKernel)               \
  X(clEnqueueNDRangeKernel)        \
  X(clCreateUserEvent)             \
  X(clSetUserEventStatus)          \
  X(clGetEventInfo)                \
  X(clGetEventProfilingInfo)       \
  X(clRetainEvent)                 \
  X(clReleaseEvent)                \
  X(clFinish)

// Thread-safe once loaded. The library stays open until the process ends: its platforms keep threads of their own.
struct Api {
#define ATTUNE_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)
  ATTUNE_OPENCL_FUNCTIONS(ATTUNE_OPENCL_MEMBER)
#undef ATTUNE_OPENCL_MEMBER
};

// Unavailable with the loader's own words when the library or one of its functions is missing.
absl::StatusOr<std::shared_ptr<const Api>> LoadApi();

// A handle that is released with the function it was made with: Owned<cl_mem>(memory, api.clReleaseMemObject).
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cl_int (*)(Handle)>;

// "CL_OUT_OF_RESOURCES (-5)"
std::string ErrorText(cl_int error);

// OK, or what `call` failed with: ResourceExhausted for want of memory, Internal otherwise.
absl::Status ToStatus(cl_int error, absl::string_view call);

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_API_H_
