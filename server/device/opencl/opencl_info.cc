#include "server/device/opencl/opencl_info.h"

#include <CL/cl_ext.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/device_profile.h"

namespace attune::device::opencl {
namespace {

// Later than the 1.2 that the headers are asked for.
constexpr cl_device_info kPreferredWorkGroupSizeMultiple = 0x1067;  // OpenCL 3.0
constexpr cl_device_info kDeviceUuid = 0x106A;                      // cl_khr_device_uuid

template <typename T>
T Number(const Api& api, cl_device_id device, cl_device_info what) {
  T value{};
  if (api.clGetDeviceInfo(device, what, sizeof(value), &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}

std::string Text(const Api& api, cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (api.clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(size - 1);
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string Text(const Api& api, cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  if (api.clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (api.clGetPlatformInfo(platform, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(size - 1);
  return std::string(absl::StripAsciiWhitespace(text));
}

// Work-items that run in step. A CPU runs them one after another, whatever width its vector units have.
int64_t WarpSize(const Api& api, cl_device_id device) {
  if (Number<cl_device_type>(api, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) return 1;
  if (const auto nvidia = Number<cl_uint>(api, device, CL_DEVICE_WARP_SIZE_NV)) return nvidia;
  if (const auto amd = Number<cl_uint>(api, device, CL_DEVICE_WAVEFRONT_WIDTH_AMD)) return amd;
  return std::max<int64_t>(1, Number<size_t>(api, device, kPreferredWorkGroupSizeMultiple));
}

HostDevice Describe(const Api& api, cl_platform_id platform, cl_device_id device) {
  HostDevice result;
  result.handle = device;
  v1::Device& info = result.info;
  info.set_backend(v1::BACKEND_OPENCL);
  info.set_model(Text(api, device, CL_DEVICE_NAME));
  info.set_driver(Text(api, device, CL_DRIVER_VERSION));
  info.set_target(absl::StrCat(info.model(), " / ", Text(api, platform, CL_PLATFORM_NAME)));
  unsigned char uuid[16];
  if (api.clGetDeviceInfo(device, kDeviceUuid, sizeof(uuid), uuid, nullptr) == CL_SUCCESS) {
    info.set_uuid(absl::BytesToHexString(std::string(std::begin(uuid), std::end(uuid))));
  }
  info.set_compute_units(Number<cl_uint>(api, device, CL_DEVICE_MAX_COMPUTE_UNITS));
  info.set_warp_size(WarpSize(api, device));
  info.set_max_threads_per_block(static_cast<int64_t>(Number<size_t>(api, device, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  const auto local = static_cast<int64_t>(Number<cl_ulong>(api, device, CL_DEVICE_LOCAL_MEM_SIZE));
  info.set_shared_bytes_per_block(local);
  info.set_shared_bytes_per_sm(local);
  info.set_l2_bytes(static_cast<int64_t>(Number<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)));
  info.set_memory_bytes(static_cast<int64_t>(Number<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_SIZE)));
  info.set_sm_clock_mhz(Number<cl_uint>(api, device, CL_DEVICE_MAX_CLOCK_FREQUENCY));
  info.set_fingerprint(Fingerprint(info));
  result.toolchain = Toolchain(Text(api, platform, CL_PLATFORM_VERSION), info.driver(), info.model());
  return result;
}

}  // namespace

absl::StatusOr<std::vector<HostDevice>> FindDevices(const Api& api) {
  cl_uint count = 0;
  const cl_int error = api.clGetPlatformIDs(0, nullptr, &count);
  if (error != CL_SUCCESS || count == 0) {
    return absl::UnavailableError("no OpenCL platform is installed (PoCL: package pocl-opencl-icd)");
  }
  std::vector<cl_platform_id> platforms(count);
  if (absl::Status status = ToStatus(api.clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
      !status.ok()) {
    return absl::UnavailableError(status.message());
  }
  std::vector<HostDevice> devices;
  for (cl_platform_id platform : platforms) {
    cl_uint found = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &found) != CL_SUCCESS || found == 0) continue;
    std::vector<cl_device_id> handles(found);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, found, handles.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id handle : handles) {
      if (!Number<cl_bool>(api, handle, CL_DEVICE_AVAILABLE)) continue;
      if (!Number<cl_bool>(api, handle, CL_DEVICE_COMPILER_AVAILABLE)) continue;
      devices.push_back(Describe(api, platform, handle));
      devices.back().info.set_id(absl::StrCat("opencl:", devices.size() - 1));
    }
  }
  if (devices.empty()) return absl::UnavailableError("the OpenCL platforms have no device with a compiler");
  return devices;
}

std::string Toolchain(absl::string_view platform_version, absl::string_view driver, absl::string_view device_name) {
  std::string pocl, llvm;
  const std::vector<absl::string_view> words =
      absl::StrSplit(platform_version, absl::ByAnyChar(" ,"), absl::SkipEmpty());
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (absl::EqualsIgnoreCase(words[i], "pocl")) pocl = std::string(words[i + 1]);
    if (words[i] == "LLVM") llvm = std::string(words[i + 1]);
  }
  if (pocl.empty()) return absl::StrCat(platform_version, " driver ", driver, " ", device_name);
  return absl::StrCat("PoCL ", pocl, llvm.empty() ? "" : " LLVM ", llvm, " ", device_name);
}

}  // namespace attune::device::opencl
