#include "server/jobs/last_sweep.h"

#include <string>

#include "server/base/proto_time.h"
#include "server/store/page_token.h"

namespace attune::jobs {
namespace {

// Whatever is behind these is older than any alert looks back, on all but the busiest of hosts.
constexpr int kMostPages = 5;

}  // namespace

absl::StatusOr<std::optional<absl::Time>> LastSweep(store::Queue& queue) {
  std::string token;
  for (int i = 0; i < kMostPages; ++i) {
    const absl::StatusOr<store::Page<v1::Operation>> page = queue.List({}, store::kMostPageSize, token);
    if (!page.ok()) return page.status();
    for (const v1::Operation& operation : page->items) {
      if (IsSuccessfulSweep(operation)) return TimeOf(operation.end_time());
    }
    token = page->next_page_token;
    if (token.empty()) break;
  }
  return std::nullopt;
}

}  // namespace attune::jobs
