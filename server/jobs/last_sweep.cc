#include "server/jobs/last_sweep.h"

#include <string>

#include "server/base/proto_time.h"
#include "server/store/page_token.h"

namespace attune::jobs {

absl::StatusOr<std::optional<absl::Time>> LastSweep(store::Queue& queue) {
  std::string token;
  do {
    const absl::StatusOr<store::Page<v1::Operation>> page =
        queue.List({.kind = store::JobKind::kSweep}, store::kDefaultPageSize, token);
    if (!page.ok()) return page.status();
    for (const v1::Operation& operation : page->items) {
      if (IsSuccessfulSweep(operation)) return TimeOf(operation.end_time());
    }
    token = page->next_page_token;
  } while (!token.empty());
  return std::nullopt;
}

}  // namespace attune::jobs
