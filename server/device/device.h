// One interface over the GPU APIs. Implementations: device/cuda (Driver API and NVRTC through dlopen), device/opencl.
//
// Not thread-safe: a device belongs to the one thread of the device worker that opened it.
#ifndef ATTUNE_SERVER_DEVICE_DEVICE_H_
#define ATTUNE_SERVER_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/device/inspector.h"

namespace attune::device {

// Device memory. Freed when destroyed; must not outlive its Device.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual size_t size() const = 0;
};

// A part of a buffer as a kernel argument. `offset` is a multiple of 256. A null buffer is a null pointer.
struct BufferView {
  Buffer* buffer = nullptr;
  size_t offset = 0;
  size_t size = 0;
};

// Loaded code. Must not outlive its Device.
class Module {
 public:
  virtual ~Module() = default;
};

// Where the recipe's buffers are (v1::BufferRole). `scratch` is in the recipe's order.
struct Bindings {
  BufferView q, k, v, o, lse;
  BufferView sinks, q_bounds, kv_bounds, kv_lengths, page_table, k_scale, v_scale;
  std::vector<BufferView> scratch;
};
// What an argument of a recipe is bound to. InvalidArgument when it is no buffer of `bindings`.
absl::StatusOr<BufferView> ViewOf(const v1::KernelArg::Buffer& argument, const Bindings& bindings);

// A recipe bound to memory, ready to run. Must not outlive its module or buffers.
class Runnable {
 public:
  virtual ~Runnable() = default;
  // Runs once and waits. Aborted when the device reports a fault: the worker's process is then of no more use.
  virtual absl::Status Run() = 0;
};

// What NVML says right now; zeros where it cannot.
struct Telemetry {
  int sm_clock_mhz = 0;
  double power_w = 0;
  int temperature_c = 0;
  int64_t throttle_reasons = 0;
  bool contended = false;  // another process computes on this device
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const v1::Device& info() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;  // ResourceExhausted when full
  virtual absl::Status Upload(Buffer& to, size_t offset, absl::Span<const std::byte> from) = 0;
  virtual absl::Status Download(const Buffer& from, size_t offset, absl::Span<std::byte> to) = 0;
  virtual absl::Status Fill(Buffer& to, size_t offset, size_t bytes, std::byte value) = 0;

  // InvalidArgument when the artifact is not for this device.
  virtual absl::StatusOr<std::unique_ptr<Module>> Load(absl::Span<const std::byte> artifact) = 0;
  // FailedPrecondition when the device cannot run it at all (too much shared memory, too many threads): INFEASIBLE.
  virtual absl::StatusOr<std::unique_ptr<Runnable>> Bind(Module& module, const v1::LaunchRecipe& recipe,
                                                         const Bindings& bindings) = 0;

  // Seconds a run takes when `runs` runs follow one another without a gap (CUDA: one graph; OpenCL: one queue).
  // Run i uses runnables[i % runnables.size()]: the same code over rotating inputs.
  virtual absl::StatusOr<double> TimeHot(absl::Span<Runnable* const> runnables, int runs) = 0;
  // Seconds of one run with L2 flushed before it and the launch queued behind a blocked stream.
  virtual absl::StatusOr<double> TimeCold(Runnable& runnable) = 0;
  // The steps in which TimeCold, which has been called before, counts; zero where they do not matter.
  virtual absl::Duration ColdResolution() const { return absl::ZeroDuration(); }

  virtual Telemetry ReadTelemetry() = 0;
  // What the whole card has taken since its driver was loaded, whoever used it. It grows in steps, 20 to 100 ms apart.
  virtual absl::StatusOr<double> ReadJoules() {
    return absl::FailedPreconditionError("this device does not count its energy");
  }

  // How long kernels have run here since the device was opened, by its own events. Zero where it has none.
  virtual absl::Duration Worked() const { return absl::ZeroDuration(); }

  // Null where memory can only be looked at on the host. The device's own.
  virtual Inspector* inspector() { return nullptr; }
};

// Compiles in this process; compile workers exist so that this may crash.
class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual std::string toolchain() const = 0;  // "nvrtc 13.0"
  // COMPILE_ERROR is a response; an error status means that the compiler itself could not be used.
  virtual absl::StatusOr<worker::v1::CompileResponse> Compile(const worker::v1::CompileRequest& request) = 0;
};

// One GPU API on this host. device/cuda/cuda_backend.h and device/opencl/opencl_backend.h make them.
class Backend {
 public:
  virtual ~Backend() = default;
  // Available, or the reason why not (a library that is missing, a driver that is too old, no device).
  virtual v1::BackendStatus Status() = 0;
  virtual std::vector<v1::Device> Devices() = 0;                                           // empty when not available
  virtual absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& device_id) = 0;  // NotFound
  // A compiler may be available without any device (NVRTC on a host without a GPU). Unavailable with the reason.
  virtual absl::StatusOr<std::unique_ptr<Compiler>> OpenCompiler() = 0;
};
// All of this build. `emulate`: a device profile's name (base/device_profile.h, "l4") whose limits and PTX target
// ("compute_89") CUDA devices take on, or "".
std::vector<std::unique_ptr<Backend>> HostBackends(const std::string& emulate);

}  // namespace attune::device

#endif  // ATTUNE_SERVER_DEVICE_DEVICE_H_
