#include "server/space/evaluated.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace attune::space {

absl::Status Unusable(absl::string_view field, const std::string& text, double value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is '", text, "', which comes to ", value, "; allowed: ", allowed));
}

absl::StatusOr<int64_t> Whole(const Evaluator& evaluator, absl::string_view field, const std::string& text,
                              int64_t least, int64_t most) {
  const double value = evaluator.Value(text);
  const bool fits = value >= static_cast<double>(least) && value <= static_cast<double>(most);
  if (!fits || value != std::floor(value)) {
    return Unusable(field, text, value, absl::StrCat("integers from ", least, " to ", most));
  }
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> WholeOr(const Evaluator& evaluator, absl::string_view field, const std::string& text,
                                int64_t least, int64_t otherwise, int64_t most) {
  if (text.empty()) return otherwise;
  return Whole(evaluator, field, text, least, most);
}

}  // namespace attune::space
