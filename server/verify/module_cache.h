// Loaded code by its content: another launch-time parameter re-uses the module.
#ifndef ATTUNE_SERVER_VERIFY_MODULE_CACHE_H_
#define ATTUNE_SERVER_VERIFY_MODULE_CACHE_H_

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/device/device.h"

namespace attune::verify {

// The `capacity` modules used last stay loaded; one that is still held elsewhere outlives its eviction.
// Must not outlive its device.
class ModuleCache {
 public:
  ModuleCache(device::Device& device, size_t capacity) : device_(device), capacity_(capacity) {}

  absl::StatusOr<std::shared_ptr<device::Module>> Get(absl::string_view artifact);

 private:
  device::Device& device_;
  size_t capacity_;
  std::list<std::pair<std::string, std::shared_ptr<device::Module>>> modules_;  // by SHA-256, the last used first
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_MODULE_CACHE_H_
