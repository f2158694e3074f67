// device::Inspector by the kernels of check_kernels.cu.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_CHECK_CUDA_INSPECTOR_H_
#define ATTUNE_SERVER_DEVICE_CUDA_CHECK_CUDA_INSPECTOR_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"
#include "server/device/cuda/work_clock.h"
#include "server/device/device.h"
#include "server/device/inspector.h"

namespace attune::device::cuda {

// The text of check_kernels.cu.
extern const char kCheckKernels[];
// Compiles it for a device's target. As Compiler::Compile, and Internal when the text does not compile.
absl::StatusOr<std::string> CompileCheckKernels(Compiler& compiler, const std::string& target);

class CudaInspector : public Inspector {
 public:
  // Needs a current context. `api`, `stream` and `clock` outlive it; what it does is queued on `stream`, and counted.
  static absl::StatusOr<std::unique_ptr<CudaInspector>> Create(const DriverApi& api, StreamHandle stream,
                                                               const std::string& artifact, WorkClock& clock);

  absl::StatusOr<std::vector<uint64_t>> Digests(absl::Span<const BufferView> ranges, uint64_t key) override;
  absl::StatusOr<Tally> Compare(const BufferView& out, Element type, const BufferView& reference, float absolute,
                                float relative) override;
  absl::Status Draw(const BufferView& to, const Drawing& drawing) override;
  absl::Status Copy(const BufferView& to, const BufferView& from) override;

 private:
  CudaInspector(const DriverApi& api, StreamHandle stream, WorkClock& clock)
      : api_(api), stream_(stream), clock_(clock) {}

  absl::Status DigestsOfSome(absl::Span<const BufferView> ranges, uint64_t key, absl::Span<uint64_t> digests);
  // Counted from here on, until the caller has waited by EndAndWait.
  absl::Status Launch(FunctionHandle function, uint64_t items, unsigned rows, absl::Span<void* const> parameters);
  // Numbers that nobody knows, at the answers' place on the device; and what has become of them there.
  absl::Status SendNonces(size_t count);
  absl::Status ReceiveAnswers(size_t count);

  const DriverApi& api_;
  const StreamHandle stream_;
  WorkClock& clock_;
  LoadedModule module_;
  FunctionHandle digest_ = nullptr, compare_ = nullptr, draw_ = nullptr;
  Memory answers_, table_;
  HostMemory staging_;  // pinned: nonces on their way there, answers on their way back
  std::vector<uint64_t> nonces_;
  std::mt19937_64 random_{std::random_device()()};
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_CHECK_CUDA_INSPECTOR_H_
