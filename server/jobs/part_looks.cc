#include "server/jobs/part_looks.h"

#include <memory>

namespace attune::jobs {

absl::StatusOr<std::vector<v1::Operation>> PartLooks::At(const std::vector<std::string>& names) {
  std::vector<v1::Operation> all(names.size());
  std::vector<size_t> others;
  std::set<std::string> here;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::shared_ptr<LiveOperation> live = operations_.Find(names[i]);
    if (live == nullptr) {
      others.push_back(i);
      continue;
    }
    all[i] = live->Snapshot();
    here.insert(names[i]);
  }
  const bool together = interval_ > absl::ZeroDuration();
  if (together && !others.empty()) {
    if (absl::Status status = Look(); !status.ok()) return status;
  }
  for (const size_t i : others) {
    const auto known = elsewhere_.find(names[i]);
    if (known != elsewhere_.end() && !here_.contains(names[i])) {
      all[i] = known->second;
      continue;
    }
    // It is new, or has ended, or has left this host.
    absl::StatusOr<v1::Operation> now = operations_.Get(names[i]);
    if (!now.ok()) return now.status();
    if (together && !now->done()) elsewhere_[names[i]] = *now;
    all[i] = *std::move(now);
  }
  here_ = std::move(here);
  return all;
}

absl::Status PartLooks::Look() {
  const absl::Duration now = clock_();
  if (now < next_) return absl::OkStatus();
  absl::StatusOr<std::vector<v1::Operation>> active = operations_.PartsOf(parent_, /*active_only=*/true);
  if (!active.ok()) return active.status();
  elsewhere_.clear();
  for (v1::Operation& part : *active) elsewhere_[part.name()] = std::move(part);
  next_ = now + interval_;
  return absl::OkStatus();
}

}  // namespace attune::jobs
