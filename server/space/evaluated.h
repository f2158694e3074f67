// Numbers of a recipe: expressions are doubles, what they are for is not.
#ifndef ATTUNE_SERVER_SPACE_EVALUATED_H_
#define ATTUNE_SERVER_SPACE_EVALUATED_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/space/evaluator.h"

namespace attune::space {

// Whole numbers are exact in a double up to here.
inline constexpr int64_t kMaxExact = int64_t{1} << 53;

// "grid_x is 'tiles / 3', which comes to 5.33333; allowed: ..."
absl::Status Unusable(absl::string_view field, const std::string& text, double value, absl::string_view allowed);

// What `text` comes to, which must be an integer from `least` to `most`.
absl::StatusOr<int64_t> Whole(const Evaluator& evaluator, absl::string_view field, const std::string& text,
                              int64_t least, int64_t most);

// `otherwise` when `text` is empty.
absl::StatusOr<int64_t> WholeOr(const Evaluator& evaluator, absl::string_view field, const std::string& text,
                                int64_t least, int64_t otherwise, int64_t most = std::numeric_limits<int32_t>::max());

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_EVALUATED_H_
