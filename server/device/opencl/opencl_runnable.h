// A launch recipe as kernels with their arguments set, and the running of it.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_RUNNABLE_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_RUNNABLE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/device/opencl/opencl_api.h"

namespace attune::device::opencl {

class OpenClBuffer : public Buffer {
 public:
  OpenClBuffer(Owned<cl_mem> memory, size_t size) : memory_(std::move(memory)), size_(size) {}
  size_t size() const override { return size_; }
  cl_mem memory() const { return memory_.get(); }

 private:
  Owned<cl_mem> memory_;
  size_t size_;
};

class OpenClModule : public Module {
 public:
  explicit OpenClModule(Owned<cl_program> program) : program_(std::move(program)) {}
  cl_program program() const { return program_.get(); }

 private:
  Owned<cl_program> program_;
};

// What a runnable runs on; outlives it.
struct Stream {
  std::shared_ptr<const Api> api;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;  // in order, with profiling
};

class OpenClRunnable : public Runnable {
 public:
  // FailedPrecondition when the device cannot run a launch; InvalidArgument when recipe, kernels and bindings do not
  // fit one another.
  static absl::StatusOr<std::unique_ptr<OpenClRunnable>> Create(const Stream& stream, const OpenClModule& module,
                                                                const v1::LaunchRecipe& recipe,
                                                                const Bindings& bindings);

  absl::Status Run() override;

  // Queues the launches without waiting. `gate`, unless null, is what the first one waits for; events of the first and
  // last launch are stored where the pointers are not null.
  absl::Status Enqueue(cl_event gate, Owned<cl_event>* first, Owned<cl_event>* last);

 private:
  struct Launch {
    Owned<cl_kernel> kernel;
    size_t global[3];
    size_t local[3];
  };

  explicit OpenClRunnable(const Stream& stream) : stream_(stream) {}
  absl::Status AddLaunch(const OpenClModule& module, const v1::KernelLaunch& launch, const Bindings& bindings);
  absl::Status CheckFits(cl_kernel kernel, const v1::KernelLaunch& launch) const;
  absl::Status SetArgument(cl_kernel kernel, cl_uint index, const v1::KernelArg& argument, const Bindings& bindings);
  absl::StatusOr<cl_mem> MemoryOf(const BufferView& view);

  const Stream& stream_;
  std::vector<Owned<cl_mem>> parts_;  // sub-buffers
  std::vector<Launch> launches_;
};

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_RUNNABLE_H_
