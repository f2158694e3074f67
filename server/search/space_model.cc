#include "server/search/space_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "server/base/thinned.h"
#include "server/catalog/prior/tuned_problem.h"

namespace attune::search {
namespace {

constexpr size_t kLeastRows = 20;     // good ones of a near problem
constexpr size_t kLeastForALine = 8;  // good trials
constexpr double kNoise = 0.01;       // of ln(time), between two timings of one variant
constexpr double kSlow = 0.3;         // of ln(time), above the best: how slow what is slower is learned to be

double Logarithm(double value) { return std::copysign(std::log2(1 + std::abs(value)), value); }

std::vector<const NeighbourRow*> FastestFirst(const Neighbour& neighbour) {
  std::vector<const NeighbourRow*> good;
  for (const NeighbourRow& row : neighbour.rows) {
    if (row.outcome.ok) good.push_back(&row);
  }
  std::stable_sort(good.begin(), good.end(),
                   [](const NeighbourRow* a, const NeighbourRow* b) { return a->outcome.us < b->outcome.us; });
  return good;
}

// How much of the prior holds here: the slope of own times over it, between none and all.
double SlopeOf(const std::vector<double>& prior, const std::vector<double>& own) {
  if (own.size() < kLeastForALine) return 1;
  double mean_prior = 0;
  double mean_own = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    mean_prior += prior[i] / static_cast<double>(own.size());
    mean_own += own[i] / static_cast<double>(own.size());
  }
  double together = 0;
  double squares = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    together += (prior[i] - mean_prior) * (own[i] - mean_own);
    squares += (prior[i] - mean_prior) * (prior[i] - mean_prior);
  }
  return squares > 0 ? std::clamp(together / squares, 0.0, 1.0) : 1;
}

// How much of what near problems say is taken to hold here.
double TrustIn(const std::optional<SpacePrior>& prior) {
  return prior.has_value() ? kNear / std::max(prior->distance, kNear) : 1;
}

}  // namespace

FeatureScale::FeatureScale(const Field& field) : missing_(field.features.size(), 0) {
  for (size_t column = 0; column < missing_.size(); ++column) {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const Point& point : field.points) {
      if (point.features[column] == kMissing) continue;
      least = std::min(least, Logarithm(point.features[column]));
      most = std::max(most, Logarithm(point.features[column]));
    }
    missing_[column] = least > most ? 0 : least - 1 - (most - least) / 4;
  }
}

std::vector<double> FeatureScale::Scaled(const std::vector<double>& features, size_t family) const {
  std::vector<double> scaled;
  scaled.reserve(features.size() + 1);
  for (size_t column = 0; column < features.size(); ++column) {
    scaled.push_back(features[column] == kMissing ? missing_[column] : Logarithm(features[column]));
  }
  scaled.push_back(static_cast<double>(family));
  return scaled;
}

std::vector<std::pair<size_t, Outcome>> LearnedFrom(const std::vector<std::pair<size_t, Outcome>>& told) {
  if (told.size() <= kMostTold) return told;
  std::vector<size_t> by_time(told.size());
  std::iota(by_time.begin(), by_time.end(), 0);
  const auto cost = [&told](size_t i) {
    return told[i].second.ok ? told[i].second.us : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(by_time.begin(), by_time.end(), [&](size_t a, size_t b) { return cost(a) < cost(b); });
  std::vector<size_t> places;
  for (size_t rank : Thinned(told.size(), kMostTold)) places.push_back(by_time[rank]);
  std::sort(places.begin(), places.end());
  std::vector<std::pair<size_t, Outcome>> learned;
  for (size_t place : places) learned.push_back(told[place]);
  return learned;
}

std::optional<SpacePrior> PriorOf(const Field& field, uint64_t seed) {
  const FeatureScale scale(field);
  SpacePrior prior;
  TrainingRows rows;
  for (const Neighbour& neighbour : field.neighbours) {
    const std::vector<const NeighbourRow*> good = FastestFirst(neighbour);
    if (good.size() < kLeastRows) continue;
    if (rows.size() == 0) prior.distance = neighbour.distance;  // the nearest comes first
    for (size_t i : Thinned(good.size(), catalog::kMostLearned)) {
      rows.Add(scale.Scaled(good[i]->features, good[i]->family), std::log(good[i]->outcome.us / good[0]->outcome.us),
               std::exp(-neighbour.distance));
    }
  }
  if (rows.size() == 0) {
    if (field.expected.empty()) return std::nullopt;
    return SpacePrior{field.expected, kNear};
  }
  const TreeEnsemble ensemble = TreeEnsemble::Fit(rows, {.trees = 32, .min_leaf = 2, .seed = seed});
  for (const Point& point : field.points) {
    prior.excess.push_back(ensemble.Predict(scale.Scaled(point.features, point.family)).mean);
  }
  for (size_t i = 0; i < field.expected.size(); ++i) prior.excess[i] = (prior.excess[i] + field.expected[i]) / 2;
  return prior;
}

SpaceModel::SpaceModel(const Field& field, uint64_t seed) : field_(field), prior_(PriorOf(field, seed)) {
  const FeatureScale scale(field);
  for (const Point& point : field.points) rows_.push_back(scale.Scaled(point.features, point.family));
}

std::vector<Expectation> SpaceModel::Expect(const std::vector<std::pair<size_t, Outcome>>& all_told,
                                            uint64_t seed) const {
  const std::vector<std::pair<size_t, Outcome>> told = LearnedFrom(all_told);
  std::vector<double> prior;
  std::vector<double> own;
  TrainingRows verdicts;
  bool failed = false;
  for (const auto& [candidate, outcome] : told) {
    verdicts.Add(rows_[candidate], outcome.ok ? 1 : 0);
    failed |= !outcome.ok;
    if (!outcome.ok) continue;
    prior.push_back(Prior(candidate));
    own.push_back(std::log(outcome.us));
  }
  // Trees split where the variance is: left as they are, a few very slow ones would have all of it.
  if (!own.empty()) {
    const double slowest = *std::min_element(own.begin(), own.end()) + kSlow;
    for (double& one : own) one = std::min(one, slowest);
  }
  const double slope = TrustIn(prior_) * SlopeOf(prior, own);
  TrainingRows residuals;
  size_t row = 0;
  for (const auto& [candidate, outcome] : told) {
    if (!outcome.ok) continue;
    residuals.Add(rows_[candidate], own[row] - slope * prior[row]);
    ++row;
  }
  const TreeEnsemble times = TreeEnsemble::Fit(residuals, {.trees = 64, .min_leaf = 1, .seed = seed});
  std::optional<TreeEnsemble> right;
  if (failed) right = TreeEnsemble::Fit(verdicts, {.trees = 32, .min_leaf = 2, .seed = seed + 1});
  std::vector<Expectation> expected(field_.candidates);
  for (size_t candidate = 0; candidate < expected.size(); ++candidate) {
    const TreeEnsemble::Prediction residual = times.Predict(rows_[candidate]);
    expected[candidate].mean = slope * Prior(candidate) + residual.mean;
    expected[candidate].deviation = std::hypot(residual.deviation, kNoise);
    // Never ruled out altogether: few failures are no law.
    if (right.has_value()) expected[candidate].ok = std::max(right->Predict(rows_[candidate]).mean, 0.02);
  }
  return expected;
}

}  // namespace attune::search
