#include "client/cpp/launch/ranges.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::launch {

absl::StatusOr<AnswerPtr> AnswerAt(const v1::GetBestResponse& answer, const Problem& answered, const Problem& wanted) {
  for (const v1::Domain& domain : answer.domains()) {
    const int64_t length = LengthAlong(domain.axis(), wanted);
    if (length < domain.low() || length > domain.high() || WithLength(domain.axis(), length, answered) != wanted) {
      continue;
    }
    absl::StatusOr<v1::LaunchRecipe> recipe = RecipeAt(answer.recipe(), domain, length);
    if (!recipe.ok()) return recipe.status();
    auto at = std::make_shared<v1::GetBestResponse>(answer);
    at->clear_artifact();
    at->clear_domains();
    *at->mutable_recipe() = *std::move(recipe);
    *at->mutable_problem() = ToProto(wanted);
    return at;
  }
  return absl::NotFoundError(absl::StrCat("the answer to ", ToText(answered), " does not hold for ", ToText(wanted)));
}

}  // namespace attune::launch
