#include "server/sweep/trends.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/catalog/retimings.h"
#include "server/sweep/history_of.h"
#include "server/sweep/trend.h"

namespace attune::sweep {
namespace {

constexpr int kMostPoints = 400;

absl::StatusOr<TrendTerms> TermsOf(const v1::ListTrendsRequest& request) {
  TrendTerms terms;
  const absl::StatusOr<catalog::TimeRange> range = catalog::TimeRangeOf(request);
  if (!range.ok()) return range.status();
  terms.begin = range->begin;
  terms.end = range->end;
  if (request.points() < 0 || request.points() > kMostPoints) {
    return absl::InvalidArgumentError(absl::StrCat("points is ", request.points(), "; allowed: 0 to ", kMostPoints));
  }
  terms.points = request.points();
  if (request.regression() > 0) terms.regression = request.regression();
  return terms;
}

}  // namespace

absl::StatusOr<store::Page<v1::Trend>> ListTrends(const v1::ListTrendsRequest& request, int page_size,
                                                  store::Store& store, const catalog::Host& host,
                                                  const std::function<bool()>& stopped) {
  const absl::StatusOr<TrendTerms> terms = TermsOf(request);
  if (!terms.ok()) return terms.status();
  store::IncumbentFilter filter = catalog::IncumbentsNamed(request.problem(), request.device_id(), host);
  if (request.policy() != v1::POLICY_UNSPECIFIED) filter.policy = request.policy();
  const auto served = store.ListIncumbents(filter, page_size, request.page_token());
  if (!served.ok()) return served.status();
  store::Page<v1::Trend> page{{}, served->next_page_token};
  for (const v1::Incumbent& incumbent : served->items) {
    if (stopped()) return absl::CancelledError("nobody waits for the trends any more");
    const absl::StatusOr<std::vector<v1::Incumbent>> history = HistoryOf(incumbent, store);
    if (!history.ok()) return history.status();
    const v1::Incumbent* const then = ServedAt(terms->end, incumbent, *history);
    if (then == nullptr) continue;
    const absl::StatusOr<std::vector<v1::Retiming>> retimings = RetimingsOf(incumbent, terms->begin, terms->end, store);
    if (!retimings.ok()) return retimings.status();
    v1::Trend trend = TrendOf(*then, *history, *retimings, *terms);
    if (const v1::Device* device = catalog::DeviceOfClass(host, incumbent.device_class()); device != nullptr) {
      trend.set_class_alias(device->class_alias());
    }
    const bool wanted = request.states().empty() || std::count(request.states().begin(), request.states().end(),
                                                               static_cast<int>(trend.state())) > 0;
    if (wanted) page.items.push_back(std::move(trend));
  }
  return page;
}

}  // namespace attune::sweep
