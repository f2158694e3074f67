// Page tokens: where a listing goes on. Opaque to clients; a token is good only for the listing that gave it.
#ifndef ATTUNE_SERVER_STORE_PAGE_TOKEN_H_
#define ATTUNE_SERVER_STORE_PAGE_TOKEN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::store {

// The last row of a page: its id and, where that is the order, the value sorted by.
struct PageKey {
  int64_t id = 0;
  double rank = 0;
};

// `listing` says what is listed: kind, filter and order, in any unambiguous text.
std::string EncodePageToken(absl::string_view listing, const PageKey& last);
// Nothing for the empty token, the first page. InvalidArgument for what EncodePageToken(listing, ...) did not give.
absl::StatusOr<std::optional<PageKey>> DecodePageToken(absl::string_view listing, absl::string_view token);

// Every listing's limits.
inline constexpr int kDefaultPageSize = 50;
inline constexpr int kMostPageSize = 1000;
int PageSize(int requested);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_PAGE_TOKEN_H_
