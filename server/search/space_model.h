// What is expected of every candidate, from those that were told and from the trials of near problems.
//
// Of near problems a first ensemble learns ln(time / that problem's best), rows weighted by exp(-octaves): the prior;
// the mean of it and of what the field expects already, where it does. Each errs where the other need not. Of this
// problem a second one learns what the prior leaves of ln(time), after a line through it, so that a prior that tells
// nothing has no say, and one of far problems less than it would; times far above the best are all one, since how slow
// what is slow is says nothing of the best. A third learns from failures how likely a candidate is to be right and to
// run.
#ifndef ATTUNE_SERVER_SEARCH_SPACE_MODEL_H_
#define ATTUNE_SERVER_SEARCH_SPACE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "server/search/field.h"
#include "server/search/tree_ensemble.h"

namespace attune::search {

// Features as a model takes them: logarithms, and a number of its own for what a family has not.
class FeatureScale {
 public:
  explicit FeatureScale(const Field& field);
  std::vector<double> Scaled(const std::vector<double>& features, size_t family) const;

 private:
  std::vector<double> missing_;
};

// Octaves: of problems that are farther than this, less is taken to hold here.
inline constexpr double kNear = 3;

// What other problems say of a field.
struct SpacePrior {
  std::vector<double> excess;  // ln(time) of each candidate, but for what all share
  double distance = 0;         // of the nearest problem that it was learned from; kNear of Field::expected alone
};

// Nothing where near problems say nothing and nothing is expected. Rows of a problem with few good trials are left out:
// their best may be far from what is to be had.
std::optional<SpacePrior> PriorOf(const Field& field, uint64_t seed);

struct Expectation {
  double mean = 0;       // of ln(us)
  double deviation = 0;  // standard
  double ok = 1;         // probability of a good trial
};

// Those of `told` that a model is fitted to, in their order: all, or of more than kMostTold the fastest and an even
// share of the rest, so that a fit does not take longer and longer.
inline constexpr size_t kMostTold = 1500;
std::vector<std::pair<size_t, Outcome>> LearnedFrom(const std::vector<std::pair<size_t, Outcome>>& told);

class SpaceModel {
 public:
  // `field` outlives it.
  explicit SpaceModel(const Field& field, uint64_t seed);

  // Of every candidate, once `told` has a good one: of slow ones that they are slow, not how slow. The same for the
  // same arguments.
  std::vector<Expectation> Expect(const std::vector<std::pair<size_t, Outcome>>& told, uint64_t seed) const;
  bool has_prior() const { return prior_.has_value(); }
  // As SpacePrior::excess; 0 without a prior.
  double Prior(size_t candidate) const { return prior_.has_value() ? prior_->excess[candidate] : 0; }
  // Whether the prior is of a problem within kNear.
  bool is_prior_near() const { return prior_.has_value() && prior_->distance <= kNear; }

 private:
  const Field& field_;
  std::vector<std::vector<double>> rows_;  // of each candidate, scaled
  std::optional<SpacePrior> prior_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_SPACE_MODEL_H_
