#include "client/cpp/answer_at.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/domain.h"

namespace attune {
namespace {

bool IsTuned(v1::Provenance provenance) {
  return provenance == v1::PROVENANCE_EXACT || provenance == v1::PROVENANCE_TIE || provenance == v1::PROVENANCE_STALE;
}

}  // namespace

absl::StatusOr<AnswerPtr> AnswerAt(const v1::GetBestResponse& answer, const Problem& answered, const Problem& wanted) {
  for (const v1::Domain& domain : answer.domains()) {
    const int64_t length = LengthAlong(domain.axis(), wanted);
    if (length < domain.low() || length > domain.high() || WithLength(domain.axis(), length, answered) != wanted) {
      continue;
    }
    absl::StatusOr<v1::LaunchRecipe> recipe = RecipeAt(answer.recipe(), domain, length);
    if (!recipe.ok()) return recipe.status();
    auto at = std::make_shared<v1::GetBestResponse>(answer);
    *at->mutable_problem() = ToProto(wanted);
    *at->mutable_recipe() = *std::move(recipe);
    if (IsTuned(answer.provenance())) {
      at->set_provenance(v1::PROVENANCE_NEAREST);
      at->set_provenance_detail(absl::StrCat("from ", ToText(answered)));
    }
    // What is the answered problem's alone.
    at->clear_artifact();
    at->clear_geometry();
    at->clear_ties();
    at->clear_baselines();
    at->clear_pinned();
    at->clear_domains();
    at->clear_claim();
    at->clear_predicted();
    return at;
  }
  return absl::NotFoundError(absl::StrCat("the answer to ", ToText(answered), " does not hold for ", ToText(wanted)));
}

}  // namespace attune
