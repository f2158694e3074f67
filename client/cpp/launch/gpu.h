// A GPU of this process, through libcuda alone. Private to client/cpp/launch.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_GPU_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_GPU_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"

namespace attune::launch {

namespace cuda = ::attune::device::cuda;

enum CaptureStatus : int { kNotCapturing = 0, kCapturing = 1, kCaptureInvalidated = 2 };
inline constexpr int kCaptureRelaxed = 2;            // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr unsigned kNoDestructorSync = 1;     // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
inline constexpr unsigned kGraphUserObjectMove = 1;  // CU_GRAPH_USER_OBJECT_MOVE
using UserObjectHandle = void*;                      // CUuserObject

// What a launcher calls beside cuda::DriverApi, which is the worker's. The names are the driver's without "cu".
struct LaunchApi {
  cuda::Result (*CtxGetCurrent)(cuda::ContextHandle* context) = nullptr;
  cuda::Result (*CtxPushCurrent)(cuda::ContextHandle context) = nullptr;
  cuda::Result (*CtxPopCurrent)(cuda::ContextHandle* context) = nullptr;
  cuda::Result (*StreamIsCapturing)(cuda::StreamHandle stream, CaptureStatus* status) = nullptr;
  // Its second version, since CUDA 11.3: the graph is the one that is being captured.
  cuda::Result (*StreamGetCaptureInfo)(cuda::StreamHandle stream, CaptureStatus* status, uint64_t* id,
                                       cuda::GraphHandle* graph, const void** dependencies,
                                       size_t* dependency_count) = nullptr;
  cuda::Result (*ThreadExchangeStreamCaptureMode)(int* mode) = nullptr;
  cuda::Result (*UserObjectCreate)(UserObjectHandle* object, void* value, void (*destroy)(void* value),
                                   unsigned references, unsigned flags) = nullptr;
  cuda::Result (*GraphRetainUserObject)(cuda::GraphHandle graph, UserObjectHandle object, unsigned references,
                                        unsigned flags) = nullptr;
  // Null before CUDA 12.0. The address is a pointer in the driver's declaration.
  cuda::Result (*TensorMapReplaceAddress)(cuda::EncodedTensorMap* map, cuda::DevicePointer address) = nullptr;
  // Null before CUDA 12.4.
  cuda::Result (*FuncLoad)(cuda::FunctionHandle function) = nullptr;
};

// Immutable once opened, so thread-safe. Retains the device's primary context, which is that of the CUDA runtime.
class Gpu {
 public:
  // InvalidArgument when there is no such device; Unavailable without a driver, or with one that is too old.
  static absl::StatusOr<std::shared_ptr<const Gpu>> Open(int ordinal);

  const cuda::DriverApi& driver() const { return *driver_; }
  const LaunchApi& api() const { return api_; }
  cuda::ContextHandle context() const { return context_; }
  // As the server describes the same card: model, UUID, limits.
  const v1::Device& info() const { return info_; }
  int ordinal() const { return ordinal_; }

  // Whether a CUtensorMap is its tensor's address and 120 bytes that do not depend on it, as far as this driver's own
  // functions show: storing eight bytes then re-addresses it. Asked once; the context is current.
  bool MapsBeginWithAddress() const;

 private:
  Gpu(std::shared_ptr<const cuda::DriverApi> driver, cuda::DynamicLibrary library);
  absl::Status FindFunctions();
  bool ProbeMaps() const;

  const std::shared_ptr<const cuda::DriverApi> driver_;
  const cuda::DynamicLibrary library_;
  LaunchApi api_;
  int ordinal_ = 0;
  v1::Device info_;
  cuda::PrimaryContext retained_;
  cuda::ContextHandle context_ = nullptr;
  mutable std::once_flag maps_probed_;
  mutable bool maps_begin_with_address_ = false;
};

// Makes the GPU's context the calling thread's as long as this lives; costs one call where it is already.
class CurrentContext {
 public:
  explicit CurrentContext(const Gpu& gpu);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  const Gpu& gpu_;
  bool pushed_ = false;
  absl::Status status_;
};

// Lets the calling thread allocate and load code while some stream is being captured: none of that becomes part of the
// graph, or harms it.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Gpu& gpu) : gpu_(gpu) { gpu_.api().ThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { gpu_.api().ThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Gpu& gpu_;
  int mode_ = kCaptureRelaxed;  // the thread's own while this lives
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_GPU_H_
