#include "server/forecast/class_model.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "server/catalog/answers/derived_answer.h"
#include "server/forecast/relevance.h"
#include "server/search/field.h"

namespace attune::forecast {
namespace {

constexpr size_t kWinners = 10;       // of each tuned problem
constexpr double kGuessKeeps = 0.03;  // of ln(time): by less nothing is expected to be faster than the guess

std::vector<double> FeaturesOf(const space::Variant& variant, const Problem& problem, const v1::Device& device,
                               const search::FeatureColumns& columns) {
  absl::StatusOr<std::vector<double>> row = columns.Of(variant, problem, device);
  return row.ok() ? *std::move(row) : std::vector<double>(columns.names().size(), search::kMissing);
}

}  // namespace

ClassModel::ClassModel(const Families& families, const v1::Device& device,
                       const std::vector<catalog::TunedProblem>& tuned, size_t least)
    : device_(device), columns_(families), families_(families) {
  std::vector<TunedShape> shapes;
  std::set<std::string> timed;
  std::set<std::string> winners;
  for (const catalog::TunedProblem& one : tuned) {
    if (one.variants.size() < least) continue;
    problems_.push_back(one.problem);
    fastest_.push_back(one.variants.front());
    TunedShape shape = {one.problem, one.level_us, one.us, {}};
    for (size_t i = 0; i < one.variants.size(); ++i) {
      timed.insert(one.variants[i].family->name());
      if (i < kWinners && winners.insert(one.variants[i].ToText()).second) winners_.push_back(one.variants[i]);
      shape.features.push_back(FeaturesOf(one.variants[i], one.problem, device, columns_));
    }
    shapes.push_back(std::move(shape));
  }
  for (const auto& family : families) {
    if (timed.contains(family->name())) timed_.push_back(family);
  }
  trees_ = ShapeModel::Fit(columns_.names(), device, shapes);
}

bool ClassModel::Covers(const Problem& problem) const {
  return std::any_of(problems_.begin(), problems_.end(), [&](const Problem& tuned) { return IsLike(tuned, problem); });
}

bool ClassModel::Answers(const Problem& problem) const {
  if (!Covers(problem)) return false;
  const absl::StatusOr<space::Variant> guess = catalog::HeuristicVariant(families_, problem, device_);
  return !guess.ok() || std::find(timed_.begin(), timed_.end(), guess->family) != timed_.end();
}

std::vector<space::Variant> ClassModel::Ranked(const Problem& problem) const {
  std::vector<space::Variant> variants;
  std::set<std::string> texts;
  const auto add = [&](absl::StatusOr<space::Variant> variant) {
    if (variant.ok() && texts.insert(variant->ToText()).second) variants.push_back(*std::move(variant));
  };
  for (const space::Variant& winner : winners_) {
    if (space::Applies(*winner.family, problem, device_).ok()) add(space::Refit(winner, problem, device_));
  }
  const absl::StatusOr<space::Variant> guess = catalog::HeuristicVariant(timed_, problem, device_);
  add(guess);
  std::vector<double> expected = trees_->ExpectUntried(problem, FeaturesOfEach(problem, variants));
  for (size_t i = 0; guess.ok() && i < variants.size(); ++i) {
    if (variants[i].ToText() == guess->ToText()) expected[i] -= kGuessKeeps;
  }
  const auto known = std::find(problems_.begin(), problems_.end(), problem);
  for (size_t i = 0; known != problems_.end() && i < variants.size(); ++i) {
    const space::Variant& fastest = fastest_[static_cast<size_t>(known - problems_.begin())];
    if (variants[i].ToText() == fastest.ToText()) expected[i] = -std::numeric_limits<double>::infinity();
  }
  std::vector<size_t> order(variants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return expected[a] < expected[b]; });
  std::vector<space::Variant> ranked;
  ranked.reserve(order.size());
  for (size_t i : order) ranked.push_back(std::move(variants[i]));
  return ranked;
}

std::vector<double> ClassModel::Expect(const Problem& problem, const std::vector<space::Variant>& variants) const {
  return trees_->Expect(problem, FeaturesOfEach(problem, variants));
}

std::vector<std::vector<double>> ClassModel::FeaturesOfEach(const Problem& problem,
                                                            const std::vector<space::Variant>& variants) const {
  std::vector<std::vector<double>> features;
  features.reserve(variants.size());
  for (const space::Variant& variant : variants) features.push_back(FeaturesOf(variant, problem, device_, columns_));
  return features;
}

}  // namespace attune::forecast
