#include "server/catalog/trial_time.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "google/protobuf/util/time_util.h"

namespace attune::catalog {

absl::StatusOr<absl::Duration> RecentTrialTime(const v1::Device& device, store::Store& store) {
  v1::TrialFilter filter;
  filter.set_device_id(device.id());
  const absl::StatusOr<store::Page<v1::Trial>> page =
      store.ListTrials(filter, v1::ListTrialsRequest::ORDER_NEWEST, 100, "");
  if (!page.ok()) return page.status();
  if (page->items.size() < 2) return absl::ZeroDuration();
  const std::string& job = page->items.front().job();
  const auto same_job = [&job](const v1::Trial& trial) { return trial.job() == job; };
  const auto end = std::find_if_not(page->items.begin(), page->items.end(), same_job);
  const auto count = end - page->items.begin();
  if (count < 2) return absl::ZeroDuration();
  using google::protobuf::util::TimeUtil;
  const int64_t nanoseconds = TimeUtil::TimestampToNanoseconds(page->items.front().finish_time()) -
                              TimeUtil::TimestampToNanoseconds((end - 1)->finish_time());
  return absl::Nanoseconds(nanoseconds) / (count - 1);
}

}  // namespace attune::catalog
