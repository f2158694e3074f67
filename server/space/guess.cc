#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

constexpr int64_t kCtasPerSm = 4;  // below it, SMs wait for want of other work
constexpr int64_t kMoreThanAnyGrid = int64_t{1} << 62;

// Steps between a value and the guess in the manifest's list of values.
int64_t Steps(const family::v1::Parameter& parameter, int64_t value) {
  const auto at = [&](int64_t v) { return std::find(parameter.values().begin(), parameter.values().end(), v); };
  return std::abs(at(value) - at(parameter.guess()));
}

}  // namespace

absl::StatusOr<Variant> Guess(std::shared_ptr<const Family> family, const Problem& problem, const v1::Device& device) {
  if (absl::Status applies = Applies(*family, problem, device); !applies.ok()) {
    return absl::NotFoundError(absl::StrCat(family->name(), ": ", applies.message()));
  }
  absl::StatusOr<Enumeration> space = Enumerate(family, problem, device);
  if (!space.ok()) return space.status();

  // Less is better, the first that differs decides.
  using Rank = std::tuple<int64_t, int64_t, int64_t>;
  const Variant* best = nullptr;
  Rank best_rank;
  for (const Variant& variant : space->variants) {
    int64_t compile_steps = 0;
    int64_t launch_steps = 0;
    for (size_t i = 0; i < variant.values.size(); ++i) {
      const family::v1::Parameter& parameter = family->manifest.parameters(static_cast<int>(i));
      const bool launch_time = parameter.binding() == family::v1::Parameter::BINDING_LAUNCH_TIME;
      (launch_time ? launch_steps : compile_steps) += Steps(parameter, variant.values[i]);
    }
    if (best != nullptr && compile_steps > std::get<0>(best_rank)) continue;
    absl::StatusOr<v1::LaunchRecipe> recipe = RecipeFor(variant, problem, device);
    if (!recipe.ok()) return recipe.status();
    const int64_t ctas = GeometryOf(*recipe, v1::Resources(), device).ctas();
    const int64_t wanted = kCtasPerSm * device.compute_units();
    // Enough: the fewer the better. Too few: behind any that is enough, the more the better.
    const int64_t crowd = ctas >= wanted ? ctas : kMoreThanAnyGrid - ctas;
    const Rank rank(compile_steps, crowd, launch_steps);
    if (best == nullptr || rank < best_rank) {
      best = &variant;
      best_rank = rank;
    }
  }
  if (best == nullptr) {
    return absl::NotFoundError(absl::StrCat(family->name(), " has no feasible variant for ", ToText(problem)));
  }
  return *best;
}

}  // namespace attune::space
