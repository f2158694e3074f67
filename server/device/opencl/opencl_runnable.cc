#include "server/device/opencl/opencl_runnable.h"

#include "absl/strings/str_cat.h"

namespace attune::device::opencl {
namespace {

// Dim3's unset sides are 1.
size_t Side(int64_t value) { return value == 0 ? 1 : static_cast<size_t>(value); }

}  // namespace

absl::StatusOr<std::unique_ptr<OpenClRunnable>> OpenClRunnable::Create(const Stream& stream, const OpenClModule& module,
                                                                       const v1::LaunchRecipe& recipe,
                                                                       const Bindings& bindings) {
  if (recipe.launches().empty()) return absl::InvalidArgumentError("launches is empty; at least one is needed");
  std::unique_ptr<OpenClRunnable> runnable(new OpenClRunnable(stream));
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    absl::Status status = runnable->AddLaunch(module, launch, bindings);
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat(launch.entry(), ": ", status.message()));
  }
  return runnable;
}

absl::Status OpenClRunnable::AddLaunch(const OpenClModule& module, const v1::KernelLaunch& launch,
                                       const Bindings& bindings) {
  const Api& api = *stream_.api;
  cl_int error = CL_SUCCESS;
  Owned<cl_kernel> kernel(api.clCreateKernel(module.program(), launch.entry().c_str(), &error), api.clReleaseKernel);
  if (error == CL_INVALID_KERNEL_NAME) return absl::InvalidArgumentError("the module has no such kernel");
  if (error != CL_SUCCESS) return ToStatus(error, "clCreateKernel");
  cl_uint parameters = 0;
  error = api.clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof(parameters), &parameters, nullptr);
  if (error != CL_SUCCESS) return ToStatus(error, "CL_KERNEL_NUM_ARGS");
  if (launch.args_size() != static_cast<int>(parameters)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the recipe has ", launch.args_size(), " arguments; the kernel takes ", parameters));
  }
  if (absl::Status status = CheckFits(kernel.get(), launch); !status.ok()) return status;
  for (cl_uint i = 0; i < parameters; ++i) {
    absl::Status status = SetArgument(kernel.get(), i, launch.args(static_cast<int>(i)), bindings);
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat("argument ", i, ": ", status.message()));
  }
  const size_t local[3] = {Side(launch.block().x()), Side(launch.block().y()), Side(launch.block().z())};
  launches_.push_back(
      {std::move(kernel),
       {Side(launch.grid().x()) * local[0], Side(launch.grid().y()) * local[1], Side(launch.grid().z()) * local[2]},
       {local[0], local[1], local[2]}});
  return absl::OkStatus();
}

absl::Status OpenClRunnable::CheckFits(cl_kernel kernel, const v1::KernelLaunch& launch) const {
  const Api& api = *stream_.api;
  if (launch.dynamic_shared_bytes() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("dynamic_shared_bytes is ", launch.dynamic_shared_bytes(),
                                                   "; OpenCL kernels declare theirs, so it must be 0"));
  }
  if (launch.has_cluster() || launch.overlaps_previous()) {
    return absl::InvalidArgumentError(
        absl::StrCat(launch.has_cluster() ? "cluster" : "overlaps_previous", " is given; OpenCL has no such launches"));
  }
  const size_t items = Side(launch.block().x()) * Side(launch.block().y()) * Side(launch.block().z());
  size_t most = 0;
  cl_int error =
      api.clGetKernelWorkGroupInfo(kernel, stream_.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(most), &most, nullptr);
  if (error != CL_SUCCESS) return ToStatus(error, "CL_KERNEL_WORK_GROUP_SIZE");
  if (items > most) {
    return absl::FailedPreconditionError(
        absl::StrCat("the work-group has ", items, " work-items; the device runs at most ", most));
  }
  cl_ulong needed = 0;
  error =
      api.clGetKernelWorkGroupInfo(kernel, stream_.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(needed), &needed, nullptr);
  if (error != CL_SUCCESS) return ToStatus(error, "CL_KERNEL_LOCAL_MEM_SIZE");
  cl_ulong available = 0;
  error = api.clGetDeviceInfo(stream_.device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(available), &available, nullptr);
  if (error != CL_SUCCESS) return ToStatus(error, "CL_DEVICE_LOCAL_MEM_SIZE");
  if (needed > available) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel needs ", needed, " bytes of local memory; the device has ", available));
  }
  return absl::OkStatus();
}

absl::Status OpenClRunnable::SetArgument(cl_kernel kernel, cl_uint index, const v1::KernelArg& argument,
                                         const Bindings& bindings) {
  const auto set = [&](size_t size, const void* value) {
    const cl_int error = stream_.api->clSetKernelArg(kernel, index, size, value);
    if (error == CL_INVALID_ARG_SIZE) {
      return absl::InvalidArgumentError(absl::StrCat("is ", size, " bytes; the kernel's parameter has another size"));
    }
    return ToStatus(error, "clSetKernelArg");
  };
  switch (argument.value_case()) {
    case v1::KernelArg::kI32: {
      const cl_int value = argument.i32();
      return set(sizeof(value), &value);
    }
    case v1::KernelArg::kI64: {
      const cl_long value = argument.i64();
      return set(sizeof(value), &value);
    }
    case v1::KernelArg::kF32: {
      const cl_float value = argument.f32();
      return set(sizeof(value), &value);
    }
    case v1::KernelArg::kBuffer: {
      absl::StatusOr<BufferView> view = ViewOf(argument.buffer(), bindings);
      if (!view.ok()) return view.status();
      if (view->buffer == nullptr) return set(sizeof(cl_mem), nullptr);
      absl::StatusOr<cl_mem> memory = MemoryOf(*view);
      if (!memory.ok()) return memory.status();
      return set(sizeof(cl_mem), &*memory);
    }
    case v1::KernelArg::kTensorMap:
      return absl::InvalidArgumentError("is a tensor map, which OpenCL has not; allowed: buffer, i32, i64, f32");
    case v1::KernelArg::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no value; allowed: buffer, i32, i64, f32");
}

// The whole buffer itself, or a sub-buffer made for the view and kept with this runnable.
absl::StatusOr<cl_mem> OpenClRunnable::MemoryOf(const BufferView& view) {
  const auto& buffer = static_cast<const OpenClBuffer&>(*view.buffer);
  if (view.offset > buffer.size() || view.size > buffer.size() - view.offset) {
    return absl::InvalidArgumentError(absl::StrCat("the view is bytes ", view.offset, " to ", view.offset + view.size,
                                                   " of a buffer of ", buffer.size(), " bytes"));
  }
  if (view.offset == 0) return buffer.memory();
  const cl_buffer_region region = {view.offset, view.size};
  cl_int error = CL_SUCCESS;
  Owned<cl_mem> part(
      stream_.api->clCreateSubBuffer(buffer.memory(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error),
      stream_.api->clReleaseMemObject);
  if (error != CL_SUCCESS) {
    const absl::Status status = ToStatus(error, "clCreateSubBuffer");
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), ", offset ", view.offset, ", ", view.size, " bytes"));
  }
  parts_.push_back(std::move(part));
  return parts_.back().get();
}

absl::Status OpenClRunnable::Enqueue(cl_event gate, Owned<cl_event>* first, Owned<cl_event>* last) {
  const Api& api = *stream_.api;
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Launch& launch = launches_[i];
    const bool is_first = i == 0, is_last = i + 1 == launches_.size();
    const cl_uint waits = is_first && gate != nullptr ? 1 : 0;
    const bool wants_event = (is_first && first != nullptr) || (is_last && last != nullptr);
    cl_event event = nullptr;
    const cl_int error =
        api.clEnqueueNDRangeKernel(stream_.queue, launch.kernel.get(), 3, nullptr, launch.global, launch.local, waits,
                                   waits ? &gate : nullptr, wants_event ? &event : nullptr);
    if (error != CL_SUCCESS) return ToStatus(error, "clEnqueueNDRangeKernel");
    if (!wants_event) continue;
    Owned<cl_event> owned(event, api.clReleaseEvent);
    if (is_last && last != nullptr) {
      if (is_first && first != nullptr) {
        cl_event again = event;
        if (cl_int retained = api.clRetainEvent(again); retained != CL_SUCCESS) {
          return ToStatus(retained, "clRetainEvent");
        }
        *first = Owned<cl_event>(again, api.clReleaseEvent);
      }
      *last = std::move(owned);
    } else {
      *first = std::move(owned);
    }
  }
  return absl::OkStatus();
}

absl::Status OpenClRunnable::Run() {
  Owned<cl_event> last(nullptr, stream_.api->clReleaseEvent);
  if (absl::Status status = Enqueue(nullptr, nullptr, &last); !status.ok()) return status;
  if (cl_int error = stream_.api->clFinish(stream_.queue); error != CL_SUCCESS) {
    return absl::AbortedError(absl::StrCat("clFinish: ", ErrorText(error)));
  }
  cl_int outcome = CL_COMPLETE;
  const cl_int error =
      stream_.api->clGetEventInfo(last.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(outcome), &outcome, nullptr);
  if (error != CL_SUCCESS) return ToStatus(error, "clGetEventInfo");
  if (outcome < 0) return absl::AbortedError(absl::StrCat("the kernel ended with ", ErrorText(outcome)));
  return absl::OkStatus();
}

}  // namespace attune::device::opencl
