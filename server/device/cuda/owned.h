// What the driver gives and wants back.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_OWNED_H_
#define ATTUNE_SERVER_DEVICE_CUDA_OWNED_H_

#include <utility>

#include "server/device/cuda/driver_api.h"

namespace attune::device::cuda {

// A handle that is given back with `Destroy` when this is destroyed. The driver must outlive it. After a fault the
// driver refuses to take handles back; there is nothing to be done about it then, and the process goes soon.
template <typename Handle, Result (*DriverApi::*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(const DriverApi& api, Handle handle) : api_(&api), handle_(handle) {}
  ~Owned() {
    if (api_ != nullptr) (api_->*Destroy)(handle_);
  }
  Owned(Owned&& other) noexcept : api_(std::exchange(other.api_, nullptr)), handle_(other.handle_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return api_ != nullptr; }

 private:
  const DriverApi* api_ = nullptr;  // null: nothing is owned
  Handle handle_ = {};
};

using PrimaryContext = Owned<DeviceHandle, &DriverApi::DevicePrimaryCtxRelease>;
using Memory = Owned<DevicePointer, &DriverApi::MemFree>;
using HostMemory = Owned<void*, &DriverApi::MemFreeHost>;
using LoadedModule = Owned<ModuleHandle, &DriverApi::ModuleUnload>;
using Stream = Owned<StreamHandle, &DriverApi::StreamDestroy>;
using Event = Owned<EventHandle, &DriverApi::EventDestroy>;
using Graph = Owned<GraphHandle, &DriverApi::GraphDestroy>;
using GraphExec = Owned<GraphExecHandle, &DriverApi::GraphExecDestroy>;

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_OWNED_H_
