// Listings of what tests keep in memory, in the pages that store.h promises.
#ifndef ATTUNE_SERVER_STORE_TESTING_LISTING_H_
#define ATTUNE_SERVER_STORE_TESTING_LISTING_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/page.h"
#include "server/store/page_token.h"

namespace attune::store {

// One row of a listing, in its order.
template <typename T>
struct Row {
  PageKey key;
  T item;
};

// Cuts a page out of the rows of a whole listing. `comes_after` says whether a row is behind the token's.
template <typename T, typename ComesAfter>
absl::StatusOr<Page<T>> Cut(std::vector<Row<T>> rows, const std::string& listing, int page_size,
                            absl::string_view page_token, ComesAfter comes_after) {
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const size_t size = static_cast<size_t>(PageSize(page_size));
  Page<T> page;
  PageKey last;
  for (Row<T>& row : rows) {
    if (after->has_value() && !comes_after(row.key, **after)) continue;
    if (page.items.size() == size) {
      page.next_page_token = EncodePageToken(listing, last);
      break;
    }
    last = row.key;
    page.items.push_back(std::move(row.item));
  }
  return page;
}

inline bool IsOlder(const PageKey& row, const PageKey& last) { return row.id < last.id; }

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_LISTING_H_
