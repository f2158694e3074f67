// What a strategy that learns begins with: every candidate as a point, the trials that are known of them, and those of
// near problems.
#ifndef ATTUNE_SERVER_SEARCH_LEARNING_FIELD_H_
#define ATTUNE_SERVER_SEARCH_LEARNING_FIELD_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/catalog/prior/shipped_prior.h"
#include "server/search/candidates.h"
#include "server/search/field.h"
#include "server/search/search_spec.h"
#include "server/store/store.h"

namespace attune::search {

// Of tuned problems the nearest are learned from, and none that is farther.
inline constexpr size_t kMostNeighbours = 6;
inline constexpr double kFarthest = 6;  // octaves

// Near problems are those that something is served for, and of others those that were `shipped` for the card's model.
// `job`: whose own trials count against its budget, and are known to it even where it tries anew what is known.
absl::StatusOr<Field> LearningField(const CandidateSet& candidates, const SearchSpec& spec, absl::string_view job,
                                    const std::vector<std::shared_ptr<const space::Family>>& families,
                                    const std::vector<catalog::PriorTable>& shipped, store::Store& store);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_LEARNING_FIELD_H_
