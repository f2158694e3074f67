#include "server/space/domains.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "proto/attune/domain.h"
#include "server/space/recipe.h"
#include "server/space/step_fit.h"

namespace attune::space {
namespace {

using v1::Domain;
using v1::Varying;

// A recipe's numbers, in ChangeNumbers' order, and all that may not differ: the rest of it, and what it is compiled
// with.
struct Evaluation {
  std::vector<int64_t> numbers;
  std::string rest;
  std::vector<double> defines;

  bool SameButForNumbers(const Evaluation& other) const { return rest == other.rest && defines == other.defines; }
};

// Nothing when the variant is not feasible for the problem.
std::optional<Evaluation> Evaluated(const Variant& variant, const Problem& problem, const v1::Device& device) {
  Evaluation sample;
  absl::StatusOr<v1::LaunchRecipe> recipe = RecipeAndDefines(variant, problem, device, &sample.defines);
  if (!recipe.ok()) return std::nullopt;
  ChangeNumbers(*recipe, [&sample](const Varying&, int64_t value) {
    sample.numbers.push_back(value);
    return 0;
  });
  sample.rest = recipe->SerializeAsString();
  return sample;
}

using Numbers = std::vector<int64_t>;

// Those of own, own + by, own + 2 by, ... as far as `last`, without those of `own` itself; they end where the variant
// is another code, or launched otherwise.
std::vector<Numbers> NumbersFrom(int64_t own, int64_t by, int64_t last, const Evaluation& sample,
                                 const std::function<std::optional<Evaluation>(int64_t)>& at) {
  std::vector<Numbers> numbers;
  for (int64_t length = own; length != last;) {
    length += by;
    std::optional<Evaluation> there = at(length);
    if (!there.has_value() || !there->SameButForNumbers(sample)) break;
    numbers.push_back(std::move(there->numbers));
  }
  return numbers;
}

// Where the numbers of the variant's recipe for `problem` are, in ChangeNumbers' order.
std::vector<Varying> PlacesOf(v1::LaunchRecipe recipe) {
  std::vector<Varying> places;
  ChangeNumbers(recipe, [&places](const Varying& place, int64_t value) {
    places.push_back(place);
    return value;
  });
  return places;
}

// The longest domain that begins with numbers[begin], which are of length `low`; those of the lengths above follow.
// What is nowhere else than in `own` does not vary.
Domain FirstDomain(const std::vector<Numbers>& numbers, size_t begin, int64_t low, const std::vector<Varying>& places,
                   const Numbers& own) {
  std::vector<StepFit> fits;
  fits.reserve(places.size());
  for (const int64_t number : numbers[begin]) fits.emplace_back(low, number);
  size_t end = begin + 1;
  for (; end < numbers.size(); ++end) {
    std::vector<StepFit> next = fits;
    bool fit = true;
    for (size_t i = 0; fit && i < next.size(); ++i) fit = next[i].Take(numbers[end][i]);
    if (!fit) break;
    fits = std::move(next);
  }
  Domain domain;
  domain.set_low(low);
  domain.set_high(low + static_cast<int64_t>(end - begin) - 1);
  for (size_t i = 0; i < fits.size(); ++i) {
    if (fits[i].constant() && numbers[begin][i] == own[i]) continue;
    *domain.add_varying() = places[i];
    *domain.mutable_varying()->rbegin()->mutable_step() = fits[i].step();
  }
  return domain;
}

// Those with `own` and the next ones above; where they are fewer than kMostDomains, those below.
std::vector<Domain> Nearest(std::vector<Domain> domains, int64_t own) {
  if (domains.size() <= kMostDomains) return domains;
  const auto home = std::find_if(domains.begin(), domains.end(), [own](const Domain& d) { return own <= d.high(); });
  const auto first = std::min(home, domains.end() - kMostDomains);
  return {first, first + kMostDomains};
}

}  // namespace

std::vector<Domain> DomainsOf(const Variant& variant, const Problem& problem, const v1::Device& device,
                              Domain::Axis axis, int64_t low, int64_t high) {
  const auto at = [&](int64_t length) { return Evaluated(variant, WithLength(axis, length, problem), device); };
  const int64_t own = LengthAlong(axis, problem);
  const std::optional<Evaluation> sample = at(own);
  const absl::StatusOr<v1::LaunchRecipe> recipe = RecipeFor(variant, problem, device);
  if (!sample.has_value() || !recipe.ok()) return {};
  std::vector<Numbers> numbers = NumbersFrom(own, -1, low, *sample, at);
  const int64_t lowest = own - static_cast<int64_t>(numbers.size());
  std::reverse(numbers.begin(), numbers.end());
  numbers.push_back(sample->numbers);
  std::vector<Numbers> above = NumbersFrom(own, 1, high, *sample, at);
  std::move(above.begin(), above.end(), std::back_inserter(numbers));

  const std::vector<Varying> places = PlacesOf(*recipe);
  std::vector<Domain> domains;
  for (size_t begin = 0; begin < numbers.size();) {
    domains.push_back(FirstDomain(numbers, begin, lowest + static_cast<int64_t>(begin), places, sample->numbers));
    domains.back().set_axis(axis);
    begin += static_cast<size_t>(domains.back().high() - domains.back().low() + 1);
  }
  return Nearest(std::move(domains), own);
}

}  // namespace attune::space
