#include "server/device/opencl/opencl_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace attune::device::opencl {
namespace {

constexpr char kLibrary[] = "libOpenCL.so.1";

struct NamedError {
  cl_int code;
  absl::string_view name;
};
constexpr NamedError kErrors[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
    {CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS"},
    {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
    {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
    {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Api>> LoadApi() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("OpenCL loader: ", dlerror()));
  auto api = std::make_shared<Api>();
#define ATTUNE_OPENCL_FIND(name)                                                                        \
  api->name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));                               \
  if (api->name == nullptr) {                                                                           \
    return absl::UnavailableError(absl::StrCat(kLibrary, " has no ", #name, "; OpenCL 1.2 is needed")); \
  }
  ATTUNE_OPENCL_FUNCTIONS(ATTUNE_OPENCL_FIND)
#undef ATTUNE_OPENCL_FIND
  return api;
}

std::string ErrorText(cl_int error) {
  for (const NamedError& named : kErrors) {
    if (named.code == error) return absl::StrCat(named.name, " (", error, ")");
  }
  return absl::StrCat("OpenCL error ", error);
}

absl::Status ToStatus(cl_int error, absl::string_view call) {
  if (error == CL_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(call, ": ", ErrorText(error));
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace attune::device::opencl
