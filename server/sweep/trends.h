// Trends of all that is served, and comparisons of times, problem by problem, read from the store.
#ifndef ATTUNE_SERVER_SWEEP_TRENDS_H_
#define ATTUNE_SERVER_SWEEP_TRENDS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "attune/v1/trend.pb.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::sweep {

// Of a page of what is served, those that the request asks for: a page may be short, or empty, before the last. The
// request is valid (the service has seen to it). Cancelled soon after `stopped` says so.
absl::StatusOr<store::Page<v1::Trend>> ListTrends(const v1::ListTrendsRequest& request, int page_size,
                                                  store::Store& store, const catalog::Host& host,
                                                  const std::function<bool()>& stopped);

// Of every problem that is served on the classes meant; from one side to the other, each by the median of the last
// night that was as selected, else by what was served then. InvalidArgument names the field.
absl::StatusOr<v1::CompareTimesResponse> CompareTimes(const v1::CompareTimesRequest& request, store::Store& store,
                                                      const catalog::Host& host, const std::function<bool()>& stopped);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_TRENDS_H_
