#include "server/promotion/alternatives.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/attune/objective.h"
#include "server/catalog/host.h"
#include "server/search/todays_variant.h"
#include "server/trials/trial.h"

namespace attune::promotion {
namespace {

std::optional<size_t> Best(v1::Objective objective, absl::Span<const v1::Trial> contestants, const Amount& fastest) {
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < contestants.size(); ++i) {
    const std::optional<Amount> amount = AmountOf(objective, contestants[i].timing());
    if (!trials::Timed(contestants[i]) || !amount.has_value() || !IsCertainlyLess(*amount, fastest)) continue;
    if (best.has_value() && amount->middle >= least) continue;
    best = i;
    least = amount->middle;
  }
  return best;
}

bool StillHolds(const v1::Trial& trial, const catalog::TuningKey& tuning_key,
                const std::vector<std::shared_ptr<const space::Family>>& families) {
  const absl::StatusOr<space::Variant> variant = search::TodaysVariant(trial, tuning_key, families);
  return variant.ok() &&
         catalog::SameDependencies(trial.dependencies(), catalog::DependenciesOf(*variant->family, tuning_key)) &&
         catalog::IsOf(catalog::InstanceOf(trial), tuning_key.device);
}

bool IsTheVariantOf(const v1::Trial& trial, const v1::Incumbent& incumbent) {
  return trial.variant().text() == incumbent.trial().variant().text();
}

}  // namespace

std::vector<BestBy> ChooseAlternatives(absl::Span<const v1::Trial> contestants, size_t fastest) {
  std::vector<BestBy> chosen;
  for (const v1::Objective objective : {v1::OBJECTIVE_ENERGY, v1::OBJECTIVE_EDP}) {
    const std::optional<Amount> amount = AmountOf(objective, contestants[fastest].timing());
    if (amount.has_value()) chosen.push_back({objective, Best(objective, contestants, *amount)});
  }
  return chosen;
}

std::string WordsOf(const BestBy& best, absl::Span<const v1::Trial> contestants, size_t fastest) {
  const absl::string_view name = AmountName(best.objective);
  if (!best.contestant.has_value()) return absl::StrCat("; no other has less ", name, " for certain");
  const v1::Trial& trial = contestants[*best.contestant];
  const double amount = AmountOf(best.objective, trial.timing())->middle;
  const double before = AmountOf(best.objective, contestants[fastest].timing())->middle;
  return absl::StrFormat("; %s has the least %s, %s a run, %.1f %% less than the fastest", trial.variant().text(), name,
                         AmountText(best.objective, amount), 100 * (1 - amount / before));
}

void DropChanged(const catalog::TuningKey& tuning_key,
                 const std::vector<std::shared_ptr<const space::Family>>& families,
                 const std::function<bool(const v1::Trial&)>& wrong, v1::Incumbent& incumbent) {
  const auto changed = [&](const v1::Alternative& alternative) {
    if (incumbent.pinned()) return true;
    // The incumbent itself.
    if (!alternative.has_trial()) return false;
    return !StillHolds(alternative.trial(), tuning_key, families) || (wrong && wrong(alternative.trial()));
  };
  auto& all = *incumbent.mutable_alternatives();
  all.erase(std::remove_if(all.begin(), all.end(), changed), all.end());
}

void CompareWithFastest(absl::Span<const v1::Trial> known, v1::Incumbent& incumbent) {
  std::vector<v1::Trial> others;
  const auto add = [&](const v1::Trial& trial) {
    if (!IsTheVariantOf(trial, incumbent)) others.push_back(trial);
  };
  for (const v1::Trial& trial : known) add(trial);
  for (const v1::Alternative& one : incumbent.alternatives()) add(one.trial());

  std::vector<v1::Alternative> left;
  for (v1::Alternative& one : *incumbent.mutable_alternatives()) {
    const std::optional<Amount> fastest = AmountOf(one.objective(), incumbent.timing());
    const auto is_less = [&](const v1::Trial& trial) {
      const std::optional<Amount> amount = AmountOf(one.objective(), trial.timing());
      return amount.has_value() && fastest.has_value() && IsCertainlyLess(*amount, *fastest);
    };
    const bool itself = !one.has_trial() || IsTheVariantOf(one.trial(), incumbent);
    if (!itself && (!fastest.has_value() || is_less(one.trial()))) {
      left.push_back(std::move(one));
    } else if (std::none_of(others.begin(), others.end(), is_less)) {
      left.emplace_back().set_objective(one.objective());
    }
  }
  incumbent.clear_alternatives();
  for (v1::Alternative& one : left) *incumbent.add_alternatives() = std::move(one);
}

}  // namespace attune::promotion
