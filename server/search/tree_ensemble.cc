#include "server/search/tree_ensemble.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/search/random_numbers.h"

namespace attune::search {

void TrainingRows::Add(absl::Span<const double> row, double target, double weight) {
  columns = row.size();
  values.insert(values.end(), row.begin(), row.end());
  targets.push_back(target);
  weights.push_back(weight);
}

// Grows one tree after the other.
class TreeEnsemble::Builder {
 public:
  Builder(const TrainingRows& rows, const Options& options, std::vector<Node>& nodes)
      : rows_(rows),
        min_leaf_(static_cast<size_t>(std::max(options.min_leaf, 1))),
        random_(options.seed),
        nodes_(nodes) {
    order_.resize(rows.size());
  }

  int32_t Grow() {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    const auto root = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
    // Depth first, without recursion: a tree may be as deep as it has rows.
    std::vector<Open> open = {{root, 0, order_.size()}};
    while (!open.empty()) {
      const Open node = open.back();
      open.pop_back();
      const Split split = BestSplit(node.begin, node.end);
      if (split.column < 0) {
        nodes_[node.index].value = Mean(node.begin, node.end);
        continue;
      }
      const auto middle = std::partition(
          order_.begin() + static_cast<ptrdiff_t>(node.begin), order_.begin() + static_cast<ptrdiff_t>(node.end),
          [&](size_t row) { return Value(row, static_cast<size_t>(split.column)) <= split.threshold; });
      const auto at = static_cast<size_t>(middle - order_.begin());
      const auto below = static_cast<int32_t>(nodes_.size());
      nodes_.resize(nodes_.size() + 2);
      nodes_[node.index].column = split.column;
      nodes_[node.index].threshold = split.threshold;
      nodes_[node.index].below = below;
      open.push_back({below + 1, at, node.end});
      open.push_back({below, node.begin, at});
    }
    return root;
  }

 private:
  struct Open {
    int32_t index;
    size_t begin, end;  // of order_
  };
  struct Split {
    int32_t column = -1;
    double threshold = 0;
  };

  double Value(size_t row, size_t column) const { return rows_.values[row * rows_.columns + column]; }

  double Mean(size_t begin, size_t end) const {
    double sum = 0;
    double weight = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += rows_.weights[order_[i]] * rows_.targets[order_[i]];
      weight += rows_.weights[order_[i]];
    }
    return weight > 0 ? sum / weight : 0;
  }

  // None where the rows are too few, or all alike.
  Split BestSplit(size_t begin, size_t end) {
    Split best;
    if (end - begin < 2 * min_leaf_ || IsConstant(begin, end)) return best;
    double best_gain = -1;
    for (size_t column = 0; column < rows_.columns; ++column) {
      double least = Value(order_[begin], column);
      double most = least;
      for (size_t i = begin + 1; i < end; ++i) {
        least = std::min(least, Value(order_[i], column));
        most = std::max(most, Value(order_[i], column));
      }
      if (least == most) continue;
      const double threshold = std::min(least + random_.Uniform() * (most - least), std::nextafter(most, least));
      const double gain = Gain(begin, end, column, threshold);
      if (gain > best_gain) {
        best_gain = gain;
        best = {static_cast<int32_t>(column), threshold};
      }
    }
    return best;
  }

  bool IsConstant(size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i) {
      if (rows_.targets[order_[i]] != rows_.targets[order_[begin]]) return false;
    }
    return true;
  }

  // The variance that a split explains, times the weight, but for what all splits of a node share; -1 when a side gets
  // too few rows.
  double Gain(size_t begin, size_t end, size_t column, double threshold) const {
    double sums[2] = {0, 0};
    double weights[2] = {0, 0};
    size_t counts[2] = {0, 0};
    for (size_t i = begin; i < end; ++i) {
      const size_t row = order_[i];
      const int side = Value(row, column) <= threshold ? 0 : 1;
      sums[side] += rows_.weights[row] * rows_.targets[row];
      weights[side] += rows_.weights[row];
      ++counts[side];
    }
    if (counts[0] < min_leaf_ || counts[1] < min_leaf_) return -1;
    const double apart = sums[0] / weights[0] - sums[1] / weights[1];
    return apart * apart * weights[0] * weights[1] / (weights[0] + weights[1]);
  }

  const TrainingRows& rows_;
  const size_t min_leaf_;
  RandomNumbers random_;
  std::vector<Node>& nodes_;
  std::vector<size_t> order_;  // rows, those of a node side by side
};

TreeEnsemble TreeEnsemble::Fit(const TrainingRows& rows, const Options& options) {
  TreeEnsemble ensemble;
  Builder builder(rows, options, ensemble.nodes_);
  for (int tree = 0; tree < options.trees; ++tree) ensemble.roots_.push_back(builder.Grow());
  return ensemble;
}

double TreeEnsemble::PredictOne(size_t tree, absl::Span<const double> row) const {
  const Node* node = &nodes_[static_cast<size_t>(roots_[tree])];
  while (node->column >= 0) {
    const bool above = row[static_cast<size_t>(node->column)] > node->threshold;
    node = &nodes_[static_cast<size_t>(node->below + (above ? 1 : 0))];
  }
  return node->value;
}

TreeEnsemble::Prediction TreeEnsemble::Predict(absl::Span<const double> row) const {
  double sum = 0;
  double squares = 0;
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    const double value = PredictOne(tree, row);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(std::max<size_t>(roots_.size(), 1));
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(squares / count - mean * mean, 0.0))};
}

}  // namespace attune::search
