// The history of what is served: who may ask for what of it, and how a long one is made short.
#ifndef ATTUNE_SERVER_CATALOG_RETIMINGS_H_
#define ATTUNE_SERVER_CATALOG_RETIMINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/proto_time.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::catalog {

struct TimeRange {
  absl::Time begin = absl::InfinitePast();
  absl::Time end = absl::InfiniteFuture();
};
// Of a request with start_time and end_time. InvalidArgument when they are in the wrong order.
template <typename Request>
absl::StatusOr<TimeRange> TimeRangeOf(const Request& request) {
  TimeRange range;
  if (request.has_start_time()) range.begin = TimeOf(request.start_time());
  if (request.has_end_time()) range.end = TimeOf(request.end_time());
  if (range.begin <= range.end) return range;
  return absl::InvalidArgumentError(absl::StrCat("start_time is ", absl::FormatTime(range.begin),
                                                 ", later than end_time, ", absl::FormatTime(range.end)));
}

// In each of `spans` equal spans of the time from the oldest to the newest, one of each card, policy and variant: that
// of the lower median, with the lowest low_us and the highest high_us of all that it stands for (`count`) and
// no quantiles where these are several. Newest first, as they came.
std::vector<v1::Retiming> Thinned(std::vector<v1::Retiming> newest_first, int spans);

// A page, or with `spans` all in one. InvalidArgument names the field.
absl::StatusOr<store::Page<v1::Retiming>> ListRetimings(const v1::ListRetimingsRequest& request, int page_size,
                                                        store::Store& store, const Host& host);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_RETIMINGS_H_
