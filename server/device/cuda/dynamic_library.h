// A shared library opened at run time. Nothing of CUDA is linked: a host may have all of it, some, or none.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
#define ATTUNE_SERVER_DEVICE_CUDA_DYNAMIC_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace attune::device::cuda {

class DynamicLibrary {
 public:
  // NotFound with the loader's own words.
  static absl::StatusOr<DynamicLibrary> Open(const std::string& name);

  // Where the loader found it.
  const std::string& path() const { return path_; }

  // Sets `function` to the symbol, or to null when the library has none of that name.
  template <typename Function>
  bool Find(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(Symbol(symbol));
    return *function != nullptr;
  }

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  DynamicLibrary(std::unique_ptr<void, Close> handle, std::string path);
  void* Symbol(const char* name) const;

  std::unique_ptr<void, Close> handle_;
  std::string path_;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
