// Reading one page of a listing out of a statement.
#ifndef ATTUNE_SERVER_STORE_SQLITE_PAGE_H_
#define ATTUNE_SERVER_STORE_SQLITE_PAGE_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/page_token.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

// `select` has its parameters bound and a LIMIT of `size` + 1: the row too many says that there is another page.
// `read` turns the current row into an item, `key` into what the next page goes on from.
template <typename T, typename Read, typename Key>
absl::StatusOr<Page<T>> ReadPage(Statement& select, absl::string_view listing, int size, Read read, Key key) {
  Page<T> page;
  PageKey last;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return page;
    if (static_cast<int>(page.items.size()) == size) {
      page.next_page_token = EncodePageToken(listing, last);
      return page;
    }
    absl::StatusOr<T> item = read(select);
    if (!item.ok()) return item.status();
    page.items.push_back(*std::move(item));
    last = key(select);
  }
}

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_PAGE_H_
