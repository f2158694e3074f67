#include "server/device/opencl/opencl_compiler.h"

#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/device/opencl/source_inliner.h"

namespace attune::device::opencl {
namespace {

using worker::v1::CompileRequest;
using worker::v1::CompileResponse;

std::string BuildLog(const Api& api, cl_program program, cl_device_id device) {
  size_t size = 0;
  if (api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string log(size, '\0');
  api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(log.find('\0') == std::string::npos ? size : log.find('\0'));
  return std::string(absl::StripTrailingAsciiWhitespace(log));
}

std::string KernelNames(const Api& api, cl_program program) {
  size_t size = 0;
  if (api.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string names(size, '\0');
  api.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, names.data(), nullptr);
  names.resize(size - 1);
  return names;
}

class OpenClCompiler : public Compiler {
 public:
  OpenClCompiler(std::shared_ptr<const Api> api, std::vector<HostDevice> devices)
      : api_(std::move(api)), devices_(std::move(devices)) {}

  std::string toolchain() const override { return devices_.front().toolchain; }

  absl::StatusOr<CompileResponse> Compile(const CompileRequest& request) override {
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<const HostDevice*> device = Find(request.target());
    if (!device.ok()) return device.status();
    absl::StatusOr<CompileResponse> response = CompileFor(**device, request);
    if (!response.ok()) return response;
    response->set_toolchain((*device)->toolchain);
    response->set_compile_ms(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    return response;
  }

 private:
  absl::StatusOr<const HostDevice*> Find(absl::string_view target) const {
    std::vector<std::string> targets;
    for (const HostDevice& device : devices_) {
      if (device.info.target() == target) return &device;
      targets.push_back(absl::StrCat("'", device.info.target(), "'"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("target is '", target, "'; this host compiles for ", absl::StrJoin(targets, ", ")));
  }

  absl::StatusOr<CompileResponse> CompileFor(const HostDevice& device, const CompileRequest& request) const {
    absl::StatusOr<std::string> source = InlineIncludes(request.sources());
    if (!source.ok()) return source.status();
    cl_int error = CL_SUCCESS;
    const Owned<cl_context> context(api_->clCreateContext(nullptr, 1, &device.handle, nullptr, nullptr, &error),
                                    api_->clReleaseContext);
    if (error != CL_SUCCESS) return ToStatus(error, "clCreateContext");
    const char* text = source->data();
    const size_t size = source->size();
    const Owned<cl_program> program(api_->clCreateProgramWithSource(context.get(), 1, &text, &size, &error),
                                    api_->clReleaseProgram);
    if (error != CL_SUCCESS) return ToStatus(error, "clCreateProgramWithSource");

    CompileResponse response;
    response.set_verdict(v1::VERDICT_OK);
    const absl::Status built = Build(*api_, program.get(), device.handle, absl::StrJoin(request.options(), " "));
    if (absl::IsInvalidArgument(built)) return CompileError(built.message());
    if (!built.ok()) return built;
    response.set_log(BuildLog(*api_, program.get(), device.handle));
    for (const std::string& entry : request.entries()) {
      if (!AddEntry(program.get(), device.handle, entry, response)) {
        return CompileError(absl::StrCat("entry '", entry, "' is not a kernel of the source, which has '",
                                         KernelNames(*api_, program.get()), "'"));
      }
    }
    absl::StatusOr<std::string> binary = Binary(*api_, program.get());
    if (!binary.ok()) return binary.status();
    response.set_artifact(*std::move(binary));
    return response;
  }

  static CompileResponse CompileError(absl::string_view log) {
    CompileResponse response;
    response.set_verdict(v1::VERDICT_COMPILE_ERROR);
    response.set_log(std::string(log));
    return response;
  }

  // False when the program has no such kernel.
  bool AddEntry(cl_program program, cl_device_id device, const std::string& name, CompileResponse& response) const {
    cl_int error = CL_SUCCESS;
    const Owned<cl_kernel> kernel(api_->clCreateKernel(program, name.c_str(), &error), api_->clReleaseKernel);
    if (error != CL_SUCCESS) return false;
    CompileResponse::Entry& entry = *response.add_entries();
    entry.set_name(name);
    cl_ulong bytes = 0;
    if (api_->clGetKernelWorkGroupInfo(kernel.get(), device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(bytes), &bytes,
                                       nullptr) == CL_SUCCESS) {
      entry.set_static_shared_bytes(static_cast<int64_t>(bytes));
    }
    return true;
  }

  std::shared_ptr<const Api> api_;
  std::vector<HostDevice> devices_;
};

}  // namespace

absl::Status Build(const Api& api, cl_program program, cl_device_id device, const std::string& options) {
  const cl_int error = api.clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  switch (error) {
    case CL_SUCCESS:
      return absl::OkStatus();
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_BUILD_OPTIONS: {
      const std::string log = BuildLog(api, program, device);
      return absl::InvalidArgumentError(log.empty() ? ErrorText(error) : log);
    }
    default:
      return ToStatus(error, "clBuildProgram");
  }
}

absl::StatusOr<std::string> Binary(const Api& api, cl_program program) {
  size_t size = 0;
  cl_int error = api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
  if (error != CL_SUCCESS || size == 0) return ToStatus(error == CL_SUCCESS ? CL_INVALID_BINARY : error, "binary size");
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  error = api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr);
  if (error != CL_SUCCESS) return ToStatus(error, "CL_PROGRAM_BINARIES");
  return binary;
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompiler(std::shared_ptr<const Api> api,
                                                       std::vector<HostDevice> devices) {
  if (devices.empty()) return absl::UnavailableError("no OpenCL device to compile for");
  return std::make_unique<OpenClCompiler>(std::move(api), std::move(devices));
}

}  // namespace attune::device::opencl
