#include "server/sweep/history_of.h"

#include <cstddef>
#include <string>
#include <utility>

#include "server/base/proto_time.h"
#include "server/store/page_token.h"

namespace attune::sweep {
namespace {

// Read for one answer: a problem's re-timings of a century of nights.
constexpr size_t kMostRead = 100'000;

// All pages of a listing, `list(page_token)`.
template <typename T, typename List>
absl::StatusOr<std::vector<T>> AllOf(const List& list) {
  std::vector<T> all;
  std::string token;
  do {
    absl::StatusOr<store::Page<T>> page = list(token);
    if (!page.ok()) return page.status();
    for (T& item : page->items) all.push_back(std::move(item));
    token = page->next_page_token;
  } while (!token.empty() && all.size() < kMostRead);
  return all;
}

}  // namespace

absl::StatusOr<std::vector<v1::Incumbent>> HistoryOf(const v1::Incumbent& incumbent, store::Store& store) {
  store::IncumbentFilter filter{.problem_text = incumbent.problem_text(), .device_class = incumbent.device_class()};
  filter.policy = incumbent.policy();
  filter.history = true;
  return AllOf<v1::Incumbent>(
      [&](const std::string& token) { return store.ListIncumbents(filter, store::kMostPageSize, token); });
}

const v1::Incumbent* ServedAt(absl::Time end, const v1::Incumbent& served, const std::vector<v1::Incumbent>& history) {
  if (TimeOf(served.promote_time()) < end) return &served;
  for (const v1::Incumbent& incumbent : history) {
    if (!incumbent.rolled_back() && TimeOf(incumbent.promote_time()) < end) return &incumbent;
  }
  return nullptr;
}

absl::StatusOr<std::vector<v1::Retiming>> RetimingsOf(const v1::Incumbent& incumbent, absl::Time begin, absl::Time end,
                                                      store::Store& store) {
  store::RetimingFilter filter{.problem_text = incumbent.problem_text(), .device_class = incumbent.device_class()};
  filter.policy = incumbent.policy();
  filter.begin = begin;
  filter.end = end;
  return AllOf<v1::Retiming>(
      [&](const std::string& token) { return store.ListRetimings(filter, store::kMostPageSize, token); });
}

}  // namespace attune::sweep
