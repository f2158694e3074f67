#include "server/verify/module_cache.h"

#include <algorithm>

#include "server/base/sha256.h"

namespace attune::verify {

absl::StatusOr<std::shared_ptr<device::Module>> ModuleCache::Get(absl::string_view artifact) {
  std::string hash = Sha256(artifact);
  const auto found =
      std::find_if(modules_.begin(), modules_.end(), [&hash](const auto& entry) { return entry.first == hash; });
  if (found != modules_.end()) {
    modules_.splice(modules_.begin(), modules_, found);
    return found->second;
  }
  absl::StatusOr<std::unique_ptr<device::Module>> loaded =
      device_.Load(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(artifact.data()), artifact.size()));
  if (!loaded.ok()) return loaded.status();
  modules_.emplace_front(std::move(hash), *std::move(loaded));
  if (modules_.size() > capacity_) modules_.pop_back();
  return modules_.front().second;
}

}  // namespace attune::verify
