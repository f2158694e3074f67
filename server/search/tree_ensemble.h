// Extremely randomised trees for regression (Geurts, Ernst, Wehenkel, "Extremely randomized trees", Machine Learning
// 63, 2006): every feature of a node is split at a threshold drawn uniformly between its least and its greatest value
// there, and the split that explains most variance is kept. Their mean is the prediction, their spread how little is
// known.
//
// Deterministic by seed on every platform; one thread. Agrees with scikit-learn's ExtraTreesRegressor up to the draws
// (testdata/extra_trees.py).
#ifndef ATTUNE_SERVER_SEARCH_TREE_ENSEMBLE_H_
#define ATTUNE_SERVER_SEARCH_TREE_ENSEMBLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace attune::search {

// What is learned from: a row of numbers for each target.
struct TrainingRows {
  size_t columns = 0;
  std::vector<double> values;   // row after row
  std::vector<double> targets;  // one a row
  std::vector<double> weights;  // one a row, above 0

  size_t size() const { return targets.size(); }
  absl::Span<const double> Row(size_t row) const { return {values.data() + row * columns, columns}; }
  void Add(absl::Span<const double> row, double target, double weight = 1);
};

class TreeEnsemble {
 public:
  struct Options {
    int trees = 64;
    int min_leaf = 2;  // rows
    uint64_t seed = 1;
  };
  // Of no rows: always 0.
  static TreeEnsemble Fit(const TrainingRows& rows, const Options& options);

  struct Prediction {
    double mean = 0;
    double deviation = 0;  // standard, over the trees
  };
  Prediction Predict(absl::Span<const double> row) const;
  // Of one tree: a draw of what could be so.
  double PredictOne(size_t tree, absl::Span<const double> row) const;
  size_t trees() const { return roots_.size(); }

 private:
  struct Node {
    int32_t column = -1;  // -1: a leaf
    int32_t below = 0;    // the node for values <= threshold; the next one is for those above
    double threshold = 0;
    double value = 0;  // of a leaf
  };
  class Builder;

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_TREE_ENSEMBLE_H_
