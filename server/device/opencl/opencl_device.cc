#include "server/device/opencl/opencl_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/opencl/opencl_compiler.h"
#include "server/device/opencl/opencl_runnable.h"

namespace attune::device::opencl {
namespace {

// Reads every line of a buffer that is larger than the last cache, from all compute units, because one of them alone
// would leave what the others hold in their own caches. It holds zeros, so that nothing is written: that would have to
// be written back while the run that follows is timed.
constexpr char kFlushSource[] =
    "kernel void flush(global uint4* lines, ulong count) {\n"
    "  uint4 any = (uint4)(0);\n"
    "  for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) any |= lines[i];\n"
    "  if (any.x | any.y | any.z | any.w) lines[0] = any;\n"
    "}\n";
constexpr size_t kFlushWorkItems = 64;  // of a work-group
constexpr size_t kFlushWorkGroupsPerUnit = 16;

class OpenClDevice : public Device {
 public:
  OpenClDevice(const HostDevice& device, Owned<cl_context> context, Owned<cl_command_queue> queue, Stream stream)
      : info_(device.info), context_(std::move(context)), queue_(std::move(queue)), stream_(std::move(stream)) {}

  const v1::Device& info() const override { return info_; }

  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    cl_int error = CL_SUCCESS;
    Owned<cl_mem> memory(
        api().clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, std::max<size_t>(bytes, 1), nullptr, &error),
        api().clReleaseMemObject);
    if (error == CL_INVALID_BUFFER_SIZE || error == CL_MEM_OBJECT_ALLOCATION_FAILURE) {
      return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes: ", ErrorText(error)));
    }
    if (error != CL_SUCCESS) return ToStatus(error, "clCreateBuffer");
    return std::make_unique<OpenClBuffer>(std::move(memory), bytes);
  }

  absl::Status Upload(Buffer& to, size_t offset, absl::Span<const std::byte> from) override {
    if (absl::Status status = CheckRange(to, offset, from.size()); !status.ok()) return status;
    if (from.empty()) return absl::OkStatus();
    return ToStatus(api().clEnqueueWriteBuffer(queue_.get(), Memory(to), CL_TRUE, offset, from.size(), from.data(), 0,
                                               nullptr, nullptr),
                    "clEnqueueWriteBuffer");
  }

  absl::Status Download(const Buffer& from, size_t offset, absl::Span<std::byte> to) override {
    if (absl::Status status = CheckRange(from, offset, to.size()); !status.ok()) return status;
    if (to.empty()) return absl::OkStatus();
    return ToStatus(api().clEnqueueReadBuffer(queue_.get(), Memory(from), CL_TRUE, offset, to.size(), to.data(), 0,
                                              nullptr, nullptr),
                    "clEnqueueReadBuffer");
  }

  absl::Status Fill(Buffer& to, size_t offset, size_t bytes, std::byte value) override {
    if (absl::Status status = CheckRange(to, offset, bytes); !status.ok()) return status;
    if (bytes == 0) return absl::OkStatus();
    const cl_int error =
        api().clEnqueueFillBuffer(queue_.get(), Memory(to), &value, 1, offset, bytes, 0, nullptr, nullptr);
    if (error != CL_SUCCESS) return ToStatus(error, "clEnqueueFillBuffer");
    return ToStatus(api().clFinish(queue_.get()), "clFinish");
  }

  absl::StatusOr<std::unique_ptr<Module>> Load(absl::Span<const std::byte> artifact) override {
    if (artifact.empty()) return absl::InvalidArgumentError("artifact is empty");
    const auto* bytes = reinterpret_cast<const unsigned char*>(artifact.data());
    const size_t size = artifact.size();
    cl_int outcome = CL_SUCCESS, error = CL_SUCCESS;
    Owned<cl_program> program(
        api().clCreateProgramWithBinary(context_.get(), 1, &stream_.device, &size, &bytes, &outcome, &error),
        api().clReleaseProgram);
    if (error == CL_INVALID_BINARY || outcome == CL_INVALID_BINARY) {
      return absl::InvalidArgumentError(
          absl::StrCat("artifact (", size, " bytes) is not a program for ", info_.target()));
    }
    if (error != CL_SUCCESS) return ToStatus(error, "clCreateProgramWithBinary");
    if (absl::Status built = Build(api(), program.get(), stream_.device, ""); !built.ok()) return built;
    return std::make_unique<OpenClModule>(std::move(program));
  }

  absl::StatusOr<std::unique_ptr<Runnable>> Bind(Module& module, const v1::LaunchRecipe& recipe,
                                                 const Bindings& bindings) override {
    return OpenClRunnable::Create(stream_, static_cast<OpenClModule&>(module), recipe, bindings);
  }

  absl::StatusOr<double> TimeHot(absl::Span<Runnable* const> runnables, int runs) override {
    if (runnables.empty()) return absl::InvalidArgumentError("runnables is empty; at least one is needed");
    if (runs < 1) return absl::InvalidArgumentError(absl::StrCat("runs is ", runs, "; it must be at least 1"));
    std::vector<OpenClRunnable*> sequence;
    sequence.reserve(static_cast<size_t>(runs));
    for (int i = 0; i < runs; ++i) {
      sequence.push_back(static_cast<OpenClRunnable*>(runnables[static_cast<size_t>(i) % runnables.size()]));
    }
    absl::StatusOr<double> seconds = TimeGated(sequence, /*flush=*/false);
    if (!seconds.ok()) return seconds;
    return *seconds / runs;
  }

  absl::StatusOr<double> TimeCold(Runnable& runnable) override {
    if (flush_ == nullptr) {
      if (absl::Status status = PrepareFlush(); !status.ok()) return status;
    }
    return TimeGated({static_cast<OpenClRunnable*>(&runnable)}, /*flush=*/true);
  }

  // OpenCL has no way to ask.
  Telemetry ReadTelemetry() override { return {}; }

 private:
  const Api& api() const { return *stream_.api; }
  static cl_mem Memory(const Buffer& buffer) { return static_cast<const OpenClBuffer&>(buffer).memory(); }

  static absl::Status CheckRange(const Buffer& buffer, size_t offset, size_t bytes) {
    if (offset <= buffer.size() && bytes <= buffer.size() - offset) return absl::OkStatus();
    return absl::OutOfRangeError(
        absl::StrCat("bytes ", offset, " to ", offset + bytes, " of a buffer of ", buffer.size()));
  }

  // Seconds from the first launch's start to the last one's end. All are queued behind a closed gate, so that the
  // host's work of queueing is over, and its core free, when the first one starts.
  absl::StatusOr<double> TimeGated(const std::vector<OpenClRunnable*>& runs, bool flush) {
    cl_int error = CL_SUCCESS;
    const Owned<cl_event> gate(api().clCreateUserEvent(context_.get(), &error), api().clReleaseEvent);
    if (error != CL_SUCCESS) return ToStatus(error, "clCreateUserEvent");
    Owned<cl_event> first(nullptr, api().clReleaseEvent), last(nullptr, api().clReleaseEvent);
    absl::Status queued = flush ? flush_->Enqueue(gate.get(), nullptr, nullptr) : absl::OkStatus();
    for (size_t i = 0; i < runs.size() && queued.ok(); ++i) {
      const bool is_first = i == 0, is_last = i + 1 == runs.size();
      queued = runs[i]->Enqueue(is_first && !flush ? gate.get() : nullptr, is_first ? &first : nullptr,
                                is_last ? &last : nullptr);
    }
    // Also after a failure: what is queued must not wait for ever.
    error = api().clSetUserEventStatus(gate.get(), CL_COMPLETE);
    if (error != CL_SUCCESS) return ToStatus(error, "clSetUserEventStatus");
    error = api().clFinish(queue_.get());
    if (error != CL_SUCCESS) return absl::AbortedError(absl::StrCat("clFinish: ", ErrorText(error)));
    if (!queued.ok()) return queued;
    absl::StatusOr<cl_ulong> start = ProfileTime(first.get(), CL_PROFILING_COMMAND_START);
    if (!start.ok()) return start.status();
    absl::StatusOr<cl_ulong> end = ProfileTime(last.get(), CL_PROFILING_COMMAND_END);
    if (!end.ok()) return end.status();
    return static_cast<double>(*end - *start) * 1e-9;
  }

  absl::StatusOr<cl_ulong> ProfileTime(cl_event event, cl_profiling_info what) const {
    cl_int outcome = CL_COMPLETE;
    cl_int error = api().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(outcome), &outcome, nullptr);
    if (error != CL_SUCCESS) return ToStatus(error, "clGetEventInfo");
    if (outcome < 0) return absl::AbortedError(absl::StrCat("the kernel ended with ", ErrorText(outcome)));
    cl_ulong nanoseconds = 0;
    error = api().clGetEventProfilingInfo(event, what, sizeof(nanoseconds), &nanoseconds, nullptr);
    if (error != CL_SUCCESS) return ToStatus(error, "clGetEventProfilingInfo");
    return nanoseconds;
  }

  // Makes flush_: a quarter more than the cache, within what one buffer may be and a quarter of the memory.
  absl::Status PrepareFlush() {
    cl_ulong largest = 0;
    cl_int error =
        api().clGetDeviceInfo(stream_.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(largest), &largest, nullptr);
    if (error != CL_SUCCESS) return ToStatus(error, "CL_DEVICE_MAX_MEM_ALLOC_SIZE");
    const int64_t bytes =
        std::min({info_.l2_bytes() + info_.l2_bytes() / 4, static_cast<int64_t>(largest), info_.memory_bytes() / 4});
    const int64_t lines = std::max<int64_t>(bytes / 16, 1);
    absl::StatusOr<std::unique_ptr<Buffer>> buffer = Allocate(static_cast<size_t>(lines) * 16);
    if (!buffer.ok()) return buffer.status();
    if (absl::Status zero = Fill(**buffer, 0, (*buffer)->size(), std::byte{0}); !zero.ok()) return zero;

    const char* text = kFlushSource;
    const size_t size = sizeof(kFlushSource) - 1;
    Owned<cl_program> program(api().clCreateProgramWithSource(context_.get(), 1, &text, &size, &error),
                              api().clReleaseProgram);
    if (error != CL_SUCCESS) return ToStatus(error, "clCreateProgramWithSource");
    if (absl::Status built = Build(api(), program.get(), stream_.device, ""); !built.ok()) return built;
    // PoCL compiles what is built from a source at its first launch, on the thread that runs it, which in a caged
    // worker can start no linker. What is loaded from a binary was compiled here.
    absl::StatusOr<std::string> binary = Binary(api(), program.get());
    if (!binary.ok()) return binary.status();
    absl::StatusOr<std::unique_ptr<Module>> module =
        Load(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(binary->data()), binary->size()));
    if (!module.ok()) return module.status();

    v1::LaunchRecipe recipe;
    v1::KernelLaunch& launch = *recipe.add_launches();
    launch.set_entry("flush");
    launch.mutable_grid()->set_x(info_.compute_units() * static_cast<int64_t>(kFlushWorkGroupsPerUnit));
    launch.mutable_block()->set_x(kFlushWorkItems);
    launch.add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_SCRATCH);
    launch.add_args()->set_i64(lines);
    Bindings bindings;
    bindings.scratch.push_back({buffer->get(), 0, (*buffer)->size()});
    absl::StatusOr<std::unique_ptr<Runnable>> flush = Bind(**module, recipe, bindings);
    if (!flush.ok()) return flush.status();
    if (absl::Status warm = (*flush)->Run(); !warm.ok()) return warm;
    flush_buffer_ = *std::move(buffer);
    flush_module_ = *std::move(module);
    flush_.reset(static_cast<OpenClRunnable*>(flush->release()));
    return absl::OkStatus();
  }

  v1::Device info_;
  Owned<cl_context> context_;
  Owned<cl_command_queue> queue_;
  Stream stream_;
  // Made by the first TimeCold.
  std::unique_ptr<Buffer> flush_buffer_;
  std::unique_ptr<Module> flush_module_;
  std::unique_ptr<OpenClRunnable> flush_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::shared_ptr<const Api> api, const HostDevice& device) {
  cl_int error = CL_SUCCESS;
  Owned<cl_context> context(api->clCreateContext(nullptr, 1, &device.handle, nullptr, nullptr, &error),
                            api->clReleaseContext);
  if (error != CL_SUCCESS) return ToStatus(error, "clCreateContext");
  Owned<cl_command_queue> queue(
      api->clCreateCommandQueue(context.get(), device.handle, CL_QUEUE_PROFILING_ENABLE, &error),
      api->clReleaseCommandQueue);
  if (error != CL_SUCCESS) return ToStatus(error, "clCreateCommandQueue");
  Stream stream = {std::move(api), device.handle, context.get(), queue.get()};
  return std::make_unique<OpenClDevice>(device, std::move(context), std::move(queue), std::move(stream));
}

}  // namespace attune::device::opencl
