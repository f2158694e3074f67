#include "server/device/cuda/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <utility>

#include "absl/status/status.h"

namespace attune::device::cuda {

DynamicLibrary::DynamicLibrary(std::unique_ptr<void, Close> handle, std::string path)
    : handle_(std::move(handle)), path_(std::move(path)) {}

void DynamicLibrary::Close::operator()(void* handle) const { dlclose(handle); }

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const std::string& name) {
  std::unique_ptr<void, Close> handle(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr) return absl::NotFoundError(dlerror());
  const link_map* map = nullptr;
  std::string path = name;
  if (dlinfo(handle.get(), RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
  return DynamicLibrary(std::move(handle), std::move(path));
}

void* DynamicLibrary::Symbol(const char* name) const { return dlsym(handle_.get(), name); }

}  // namespace attune::device::cuda
