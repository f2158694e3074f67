// Lists, page after page.
#ifndef ATTUNE_CLIENT_CLI_PAGES_H_
#define ATTUNE_CLIENT_CLI_PAGES_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "client/cpp/client.h"

namespace attune::cli {

constexpr int64_t kAll = 0;
constexpr int64_t kPageSize = 1000;

// Calls `each` with the first `limit` items of a list. Where it returns bool, items that it is false of do not count.
template <typename Request, typename Response, typename Item, typename Each>
absl::Status ForEach(Client& client, absl::StatusOr<Response> (Client::*list)(const Request&),
                     const google::protobuf::RepeatedPtrField<Item>& (Response::*items)() const, Request request,
                     int64_t limit, Each each) {
  int64_t left = limit;
  do {
    request.set_page_size(static_cast<int32_t>(limit == kAll ? kPageSize : std::min(left, kPageSize)));
    const absl::StatusOr<Response> page = (client.*list)(request);
    if (!page.ok()) return page.status();
    for (const Item& item : ((*page).*items)()) {
      if constexpr (std::is_same_v<std::invoke_result_t<Each, const Item&>, bool>) {
        if (!each(item)) continue;
      } else {
        each(item);
      }
      if (--left == 0) return absl::OkStatus();
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PAGES_H_
