#include "server/catalog/retimings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/proto_time.h"

namespace attune::catalog {
namespace {

constexpr int kMostSpans = 1000;
// Read for one answer in spans: a problem's re-timings of a century of nights.
constexpr size_t kMostRead = 100'000;
constexpr int kReadPage = 1000;

// What is one curve.
using Series = std::tuple<std::string, v1::Policy, std::string>;

Series SeriesOf(const v1::Retiming& retiming) {
  return {retiming.device_uuid().empty() ? retiming.device_id() : retiming.device_uuid(), retiming.policy(),
          retiming.variant()};
}

// One for all at `places` in `all`.
v1::Retiming Merged(const std::vector<v1::Retiming>& all, std::vector<size_t> places) {
  const auto median = places.begin() + (static_cast<std::ptrdiff_t>(places.size()) - 1) / 2;
  std::nth_element(places.begin(), median, places.end(), [&all](size_t a, size_t b) {
    return std::pair(all[a].timing().median_us(), a) < std::pair(all[b].timing().median_us(), b);
  });
  v1::Retiming merged = all[*median];
  for (const size_t place : places) {
    const v1::Timing& timing = all[place].timing();
    merged.mutable_timing()->set_low_us(std::min(merged.timing().low_us(), timing.low_us()));
    merged.mutable_timing()->set_high_us(std::max(merged.timing().high_us(), timing.high_us()));
  }
  // They would be those of one of them alone.
  if (places.size() > 1) merged.mutable_timing()->clear_quantiles_us();
  merged.set_count(static_cast<int32_t>(places.size()));
  return merged;
}

absl::StatusOr<store::RetimingFilter> FilterOf(const v1::ListRetimingsRequest& request, const Host& host) {
  store::RetimingFilter filter;
  filter.problem_text = request.problem();
  if (request.policy() != v1::POLICY_UNSPECIFIED) filter.policy = request.policy();
  const v1::Device* const device = request.device_id().empty() ? nullptr : FindDevice(host, request.device_id());
  if (device == nullptr || device->id() == request.device_id()) {
    filter.device_id = request.device_id();
  } else if (device->uuid() == request.device_id()) {
    filter.device_uuid = device->uuid();
  } else {
    filter.device_class = device->fingerprint();
  }
  const absl::StatusOr<TimeRange> range = TimeRangeOf(request);
  if (!range.ok()) return range.status();
  filter.begin = range->begin;
  filter.end = range->end;
  if (request.spans() < 0 || request.spans() > kMostSpans) {
    return absl::InvalidArgumentError(absl::StrCat("spans is ", request.spans(), "; allowed: 0 to ", kMostSpans));
  }
  if (request.spans() > 0 && request.problem().empty()) {
    return absl::InvalidArgumentError("problem is empty; with spans it must name one");
  }
  return filter;
}

}  // namespace

std::vector<v1::Retiming> Thinned(std::vector<v1::Retiming> newest_first, int spans) {
  if (newest_first.empty()) return newest_first;
  std::vector<int64_t> times;
  for (const v1::Retiming& retiming : newest_first) {
    times.push_back(absl::ToUnixNanos(TimeOf(retiming.finish_time())));
  }
  const auto [oldest, newest] = std::minmax_element(times.begin(), times.end());
  const double span = static_cast<double>(*newest - *oldest) / spans;
  std::map<std::pair<int, Series>, std::vector<size_t>> groups;
  for (size_t i = 0; i < newest_first.size(); ++i) {
    const double since = static_cast<double>(times[i] - *oldest);
    const int place = span > 0 ? std::min(static_cast<int>(since / span), spans - 1) : 0;
    groups[{place, SeriesOf(newest_first[i])}].push_back(i);
  }
  // By their newest, which comes first.
  std::vector<std::pair<size_t, v1::Retiming>> merged;
  for (auto& [key, places] : groups) {
    const size_t first = places.front();
    merged.emplace_back(first, Merged(newest_first, std::move(places)));
  }
  std::sort(merged.begin(), merged.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<v1::Retiming> thinned;
  for (auto& [first, retiming] : merged) thinned.push_back(std::move(retiming));
  return thinned;
}

absl::StatusOr<store::Page<v1::Retiming>> ListRetimings(const v1::ListRetimingsRequest& request, int page_size,
                                                        store::Store& store, const Host& host) {
  const absl::StatusOr<store::RetimingFilter> filter = FilterOf(request, host);
  if (!filter.ok()) return filter.status();
  if (request.spans() == 0) return store.ListRetimings(*filter, page_size, request.page_token());
  std::vector<v1::Retiming> all;
  std::string token;
  do {
    absl::StatusOr<store::Page<v1::Retiming>> page = store.ListRetimings(*filter, kReadPage, token);
    if (!page.ok()) return page.status();
    for (v1::Retiming& retiming : page->items) all.push_back(std::move(retiming));
    token = page->next_page_token;
  } while (!token.empty() && all.size() < kMostRead);
  return store::Page<v1::Retiming>{Thinned(std::move(all), request.spans()), ""};
}

}  // namespace attune::catalog
