// What the store knows of the past of what is served.
#ifndef ATTUNE_SERVER_SWEEP_HISTORY_OF_H_
#define ATTUNE_SERVER_SWEEP_HISTORY_OF_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/store.h"

namespace attune::sweep {

inline store::Instance CardOf(const v1::Retiming& retiming) { return {retiming.device_id(), retiming.device_uuid()}; }
inline bool SameCard(const store::Instance& a, const store::Instance& b) {
  return a.uuid.empty() || b.uuid.empty() ? a.id == b.id : a.uuid == b.uuid;
}

// All that was served for the problem, class and policy of `incumbent`, newest first.
absl::StatusOr<std::vector<v1::Incumbent>> HistoryOf(const v1::Incumbent& incumbent, store::Store& store);

// That of `history` which was served just before `end`, as far as roll-backs since have left it; `served` is what is
// served now. Null: nothing was yet.
const v1::Incumbent* ServedAt(absl::Time end, const v1::Incumbent& served, const std::vector<v1::Incumbent>& history);

// Of the same problem, class and policy, newest first; a hundred thousand at most.
absl::StatusOr<std::vector<v1::Retiming>> RetimingsOf(const v1::Incumbent& incumbent, absl::Time begin, absl::Time end,
                                                      store::Store& store);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_HISTORY_OF_H_
