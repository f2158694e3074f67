// Loaded code, device memory, and a recipe bound to both.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_RUNNABLE_H_
#define ATTUNE_SERVER_DEVICE_CUDA_RUNNABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"
#include "server/device/cuda/work_clock.h"
#include "server/device/device.h"

namespace attune::device::cuda {

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(Memory memory, size_t size) : memory_(std::move(memory)), size_(size) {}
  size_t size() const override { return size_; }
  DevicePointer address() const { return memory_.get(); }

 private:
  Memory memory_;
  size_t size_;
};

class CudaModule : public Module {
 public:
  explicit CudaModule(LoadedModule module) : module_(std::move(module)) {}
  ModuleHandle handle() const { return module_.get(); }

 private:
  LoadedModule module_;
};

class CudaRunnable : public Runnable {
 public:
  // `limits` are those that the kernels must keep, which may be narrower than the device's own. `api` and `stream`
  // outlive it, and so does `clock`, which counts what Run takes and may be null.
  static absl::StatusOr<std::unique_ptr<CudaRunnable>> Bind(const DriverApi& api, StreamHandle stream,
                                                            const v1::Device& limits, const CudaModule& module,
                                                            const v1::LaunchRecipe& recipe, const Bindings& bindings,
                                                            WorkClock* clock = nullptr);

  absl::Status Run() override;
  // Queues the launches in order and does not wait.
  absl::Status Enqueue() const;
  // Runs once if it never has: the driver may allocate or load code at a kernel's first launch, which must not happen
  // behind a closed gate or inside a measurement.
  absl::Status RunOnceBefore();

  // Unlike an address, never used again for another runnable.
  uint64_t id() const { return id_; }

 private:
  struct Launch {
    FunctionHandle function = nullptr;
    LaunchConfig config;
    std::vector<LaunchAttribute> attributes;  // config's
    std::vector<uint64_t> values;             // of each argument that is no tensor map, in its low bytes
    std::vector<EncodedTensorMap> maps;       // of the others
    std::vector<void*> parameters;            // into values and maps, in the kernel's order
  };
  CudaRunnable(const DriverApi& api, StreamHandle stream, WorkClock* clock);
  static absl::StatusOr<Launch> BindLaunch(const DriverApi& api, StreamHandle stream, const v1::Device& limits,
                                           const CudaModule& module, const v1::KernelLaunch& launch,
                                           const Bindings& bindings);
  static absl::Status BindArgument(const DriverApi& api, const v1::KernelArg& arg, const Bindings& bindings,
                                   Launch* bound);

  const DriverApi& api_;
  const StreamHandle stream_;
  WorkClock* const clock_;
  const uint64_t id_;
  std::vector<Launch> launches_;
  bool has_run_ = false;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_RUNNABLE_H_
