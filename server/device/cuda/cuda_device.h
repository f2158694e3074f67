// A GPU through the CUDA Driver API: its primary context, one stream, and what timing needs.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_CUDA_DEVICE_H_
#define ATTUNE_SERVER_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/device/cuda/check/cuda_inspector.h"
#include "server/device/cuda/clock_probe.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/nvml_api.h"
#include "server/device/cuda/owned.h"
#include "server/device/cuda/runnable.h"
#include "server/device/cuda/staging.h"
#include "server/device/cuda/telemetry.h"
#include "server/device/cuda/timing/cold_timer.h"
#include "server/device/cuda/timing/hot_graph.h"
#include "server/device/cuda/work_clock.h"
#include "server/device/device.h"

namespace attune::device::cuda {

class CudaDevice : public Device {
 public:
  // Retains the device's primary context and makes it current in this thread. `nvml` may be null. `check_kernels`, an
  // artifact of CompileCheckKernels, may be empty: there is then no inspector.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(std::shared_ptr<const DriverApi> api,
                                                          std::shared_ptr<const NvmlApi> nvml, int ordinal,
                                                          v1::Device info, const std::string& check_kernels = "");

  const v1::Device& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override;
  absl::Status Upload(Buffer& to, size_t offset, absl::Span<const std::byte> from) override;
  absl::Status Download(const Buffer& from, size_t offset, absl::Span<std::byte> to) override;
  absl::Status Fill(Buffer& to, size_t offset, size_t bytes, std::byte value) override;
  absl::StatusOr<std::unique_ptr<Module>> Load(absl::Span<const std::byte> artifact) override;
  absl::StatusOr<std::unique_ptr<Runnable>> Bind(Module& module, const v1::LaunchRecipe& recipe,
                                                 const Bindings& bindings) override;
  absl::StatusOr<double> TimeHot(absl::Span<Runnable* const> runnables, int runs) override;
  absl::StatusOr<double> TimeCold(Runnable& runnable) override;
  absl::Duration ColdResolution() const override;
  Telemetry ReadTelemetry() override;
  absl::StatusOr<double> ReadJoules() override { return telemetry_.ReadJoules(); }
  absl::Duration Worked() const override { return work_clock_->total(); }
  Inspector* inspector() override { return inspector_.get(); }

 private:
  CudaDevice(std::shared_ptr<const DriverApi> api, std::shared_ptr<const NvmlApi> nvml, v1::Device info);

  const std::shared_ptr<const DriverApi> api_;
  const v1::Device info_;
  TelemetryReader telemetry_;
  // In the order in which they are made; given back in reverse.
  PrimaryContext context_;
  Stream stream_;
  std::unique_ptr<WorkClock> work_clock_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<CudaInspector> inspector_;  // null without check kernels
  std::unique_ptr<HotGraphs> hot_graphs_;
  std::unique_ptr<ClockProbe> clock_probe_;  // null where the device cannot count its clock
  std::unique_ptr<ColdTimer> cold_timer_;    // made when first needed
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_CUDA_DEVICE_H_
