#include "server/base/log_budget.h"

#include <algorithm>
#include <utility>

namespace attune {

LogBudget::Answer LogBudget::Ask(absl::string_view event, absl::Time now, int64_t& left_out) {
  const auto it = buckets_.try_emplace(std::string(event)).first;
  Bucket& bucket = it->second;
  if (bucket.at != absl::InfinitePast()) bucket.lines += absl::FDivDuration(now - bucket.at, kInterval);
  bucket.lines = std::min<double>(bucket.lines, kBurst);
  bucket.at = now;
  if (bucket.lines < 1) return bucket.left_out++ == 0 ? Answer::kAnnounce : Answer::kLeaveOut;
  bucket.lines -= 1;
  left_out = std::exchange(bucket.left_out, 0);
  return Answer::kWrite;
}

}  // namespace attune
