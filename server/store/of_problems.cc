// Reads of many problems where each read is a call and no more: one problem after the other.
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/store/page_token.h"
#include "server/store/store.h"

namespace attune::store {

absl::StatusOr<std::vector<v1::Incumbent>> Store::IncumbentsOf(const std::vector<std::string>& problem_texts) {
  std::vector<v1::Incumbent> incumbents;
  for (const std::string& problem_text : problem_texts) {
    std::string token;
    do {
      absl::StatusOr<Page<v1::Incumbent>> page = ListIncumbents({.problem_text = problem_text}, kMostPageSize, token);
      if (!page.ok()) return page.status();
      std::move(page->items.begin(), page->items.end(), std::back_inserter(incumbents));
      token = page->next_page_token;
    } while (!token.empty());
  }
  return incumbents;
}

absl::StatusOr<std::vector<v1::Baseline>> Store::BaselinesOf(const std::vector<std::string>& problem_texts) {
  std::vector<v1::Baseline> baselines;
  for (const std::string& problem_text : problem_texts) {
    absl::StatusOr<Page<v1::Baseline>> page = ListBaselines(problem_text, /*device_id=*/"", kMostPageSize, "");
    if (!page.ok()) return page.status();
    std::move(page->items.begin(), page->items.end(), std::back_inserter(baselines));
  }
  return baselines;
}

}  // namespace attune::store
