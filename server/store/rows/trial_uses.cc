#include "server/store/rows/trial_uses.h"

#include <algorithm>
#include <utility>

namespace attune::store {

void TrialUses::Note(absl::string_view problem_text, const v1::Dependencies& dependencies, absl::Time time) {
  Key key{problem_text, dependencies.toolchain(), dependencies.driver(), dependencies.device_fingerprint()};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto it = uses_.find(key); it != uses_.end()) {
    it->second = std::max(it->second, time);
  } else if (uses_.size() < kMost) {
    uses_.emplace(std::move(key), time);
  }
}

std::vector<TrialUse> TrialUses::Take() {
  std::map<Key, absl::Time> taken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken.swap(uses_);
  }
  std::vector<TrialUse> uses;
  uses.reserve(taken.size());
  for (const auto& [key, time] : taken) {
    const auto& [problem, toolchain, driver, fingerprint] = key;
    uses.push_back({problem, toolchain, driver, fingerprint, time});
  }
  return uses;
}

}  // namespace attune::store
