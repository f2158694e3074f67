#include "server/search/tree_ensemble.h"

#include <algorithm>
#include <bit>
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

// Grows one tree after the other. Rows are read column by column, as the ranks of their values, and a column that is
// the same for all rows of a node is not looked at again below it: what a tree becomes depends on none of that.
class TreeEnsemble::Builder {
 public:
  Builder(const TrainingRows& rows, const Options& options, std::vector<Node>& nodes)
      : rows_(rows),
        min_leaf_(static_cast<size_t>(std::max(options.min_leaf, 1))),
        random_(options.seed),
        nodes_(nodes),
        order_(rows.size()),
        values_(rows.columns),
        node_ranks_(rows.size()),
        node_rows_(rows.size()) {
    ranks_.reserve(rows.values.size());
    for (size_t column = 0; column < rows.columns; ++column) {
      const auto value = [&](size_t row) { return rows.values[row * rows.columns + column]; };
      std::vector<double>& values = values_[column];
      for (size_t row = 0; row < rows.size(); ++row) values.push_back(value(row));
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (size_t row = 0; row < rows.size(); ++row) {
        ranks_.push_back(
            static_cast<uint32_t>(std::lower_bound(values.begin(), values.end(), value(row)) - values.begin()));
      }
    }
  }

  int32_t Grow() {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
    varying_.resize(rows_.columns);
    for (size_t column = 0; column < rows_.columns; ++column) varying_[column] = column;
    const auto root = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
    // Depth first, without recursion: a tree may be as deep as it has rows.
    std::vector<Open> open = {{root, 0, order_.size(), 0, varying_.size()}};
    while (!open.empty()) {
      const Open node = open.back();
      open.pop_back();
      varying_.resize(node.columns_end);  // what follows was of nodes that are done
      const Split split = BestSplit(node);
      if (split.column < 0) {
        nodes_[node.index].value = Mean(node.begin, node.end);
        continue;
      }
      const uint32_t* const ranks = RanksOf(static_cast<size_t>(split.column));
      const auto middle = std::partition(order_.begin() + static_cast<ptrdiff_t>(node.begin),
                                         order_.begin() + static_cast<ptrdiff_t>(node.end),
                                         [&](uint32_t row) { return ranks[row] <= split.most_below; });
      const auto at = static_cast<size_t>(middle - order_.begin());
      const auto below = static_cast<int32_t>(nodes_.size());
      nodes_.resize(nodes_.size() + 2);
      nodes_[node.index].column = split.column;
      nodes_[node.index].threshold = split.threshold;
      nodes_[node.index].below = below;
      open.push_back({below + 1, at, node.end, node.columns_end, varying_.size()});
      open.push_back({below, node.begin, at, node.columns_end, varying_.size()});
    }
    return root;
  }

 private:
  struct Open {
    int32_t index;
    size_t begin, end;                  // of order_
    size_t columns_begin, columns_end;  // of varying_
  };
  struct Split {
    int32_t column = -1;
    double threshold = 0;
    uint32_t most_below = 0;  // the rank of the greatest value that is not above it
  };

  // What is summed of a row, both at once: the weighted target, and the weight.
  using Pair = double __attribute__((vector_size(16)));
  using Bits = int64_t __attribute__((vector_size(16)));
  struct Weighted {
    Bits bits;  // of a Pair
  };

  const uint32_t* RanksOf(size_t column) const { return &ranks_[column * rows_.size()]; }

  double Mean(size_t begin, size_t end) const {
    double sum = 0;
    double weight = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += rows_.weights[order_[i]] * rows_.targets[order_[i]];
      weight += rows_.weights[order_[i]];
    }
    return weight > 0 ? sum / weight : 0;
  }

  // None where the rows are too few, or all alike. Appends to varying_ the columns that vary in the node.
  Split BestSplit(const Open& node) {
    Split best;
    const size_t size = node.end - node.begin;
    if (size < 2 * min_leaf_ || IsConstant(node.begin, node.end)) return best;
    for (size_t i = 0; i < size; ++i) {
      const size_t row = order_[node.begin + i];
      node_rows_[i].bits = std::bit_cast<Bits>(Pair{rows_.weights[row] * rows_.targets[row], rows_.weights[row]});
    }
    double best_gain = -1;
    for (size_t candidate = node.columns_begin; candidate < node.columns_end; ++candidate) {
      const size_t column = varying_[candidate];
      const uint32_t* const ranks = RanksOf(column);
      uint32_t least_rank = ranks[order_[node.begin]];
      uint32_t most_rank = least_rank;
      for (size_t i = 0; i < size; ++i) {
        const uint32_t rank = ranks[order_[node.begin + i]];
        node_ranks_[i] = rank;
        least_rank = std::min(least_rank, rank);
        most_rank = std::max(most_rank, rank);
      }
      if (least_rank == most_rank) continue;
      varying_.push_back(column);
      const std::vector<double>& values = values_[column];
      const double least = values[least_rank];
      const double most = values[most_rank];
      const double threshold = std::min(least + random_.Uniform() * (most - least), std::nextafter(most, least));
      const auto above = std::upper_bound(values.begin() + least_rank, values.begin() + most_rank, threshold);
      const auto most_below = static_cast<uint32_t>(above - values.begin() - 1);
      const double gain = Gain(size, most_below);
      if (gain > best_gain) {
        best_gain = gain;
        best = {static_cast<int32_t>(column), threshold, most_below};
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

  // The variance that a split of node_ranks_ explains, times the weight, but for what all splits of a node share; -1
  // when a side gets too few rows.
  double Gain(size_t size, uint32_t most_below) const {
    // By masks: no processor foresees which way a branch would go.
    Pair below = {0, 0};
    Pair above = {0, 0};
    size_t count_below = 0;
    for (size_t i = 0; i < size; ++i) {
      const int64_t all_if_below = node_ranks_[i] <= most_below ? -1 : 0;
      const Bits mask = {all_if_below, all_if_below};
      const Bits bits = node_rows_[i].bits;
      below += std::bit_cast<Pair>(bits & mask);
      above += std::bit_cast<Pair>(bits & ~mask);
      count_below += static_cast<size_t>(-all_if_below);
    }
    if (count_below < min_leaf_ || size - count_below < min_leaf_) return -1;
    const double apart = below[0] / below[1] - above[0] / above[1];
    return apart * apart * below[1] * above[1] / (below[1] + above[1]);
  }

  const TrainingRows& rows_;
  const size_t min_leaf_;
  RandomNumbers random_;
  std::vector<Node>& nodes_;
  std::vector<uint32_t> order_;              // rows, those of a node side by side
  std::vector<std::vector<double>> values_;  // of each column, least first, each once
  std::vector<uint32_t> ranks_;              // of each row's value, those of a column side by side
  std::vector<size_t> varying_;              // columns, of each open node's parent
  std::vector<uint32_t> node_ranks_;         // of the rows of the node that is split
  std::vector<Weighted> node_rows_;          // the same rows
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
