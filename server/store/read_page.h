// Reading one page of a listing out of what a statement gives.
#ifndef ATTUNE_SERVER_STORE_READ_PAGE_H_
#define ATTUNE_SERVER_STORE_READ_PAGE_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/damaged_rows.h"
#include "server/store/page.h"
#include "server/store/page_token.h"

namespace attune::store {

// A page ends where it has so much, however few its items: with one more it still fits the 4 MiB that most clients of
// gRPC take.
inline constexpr size_t kEnoughPageBytes = 2 << 20;

// `select` steps over rows, of which it gives at most `size` + 1: the row too many says that there is another page.
// `read` turns the current row into an item, `key` into what the next page goes on from. Rows of which `read` says
// DataLoss are logged, as rows of `table`, and left out.
template <typename T, typename Select, typename Read, typename Key>
absl::StatusOr<Page<T>> ReadPage(Select& select, absl::string_view table, absl::string_view listing, int size,
                                 Read read, Key key) {
  Page<T> page;
  PageKey last;
  size_t bytes = 0;
  for (int rows = 0;; ++rows) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return page;
    if (rows == size || bytes >= kEnoughPageBytes) {
      page.next_page_token = EncodePageToken(listing, last);
      return page;
    }
    last = key(select);
    absl::StatusOr<T> item = read(select);
    if (item.ok()) {
      bytes += item->ByteSizeLong();
      page.items.push_back(*std::move(item));
    } else if (!SkipDamaged(item.status(), table, last.id)) {
      return item.status();
    }
  }
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_READ_PAGE_H_
