#include "client/replay/synthetic_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/search/random_numbers.h"

namespace attune::replay {
namespace {

using search::RandomNumbers;

// Some parameters by their numbers, and a number for each combination of their values.
struct Table {
  std::vector<size_t> parameters;
  std::vector<double> entries;

  double At(const std::vector<int64_t>& values, const std::vector<size_t>& sizes) const {
    size_t index = 0;
    for (size_t parameter : parameters) index = index * sizes[parameter] + static_cast<size_t>(values[parameter]);
    return entries[index];
  }
};

// Draws from one source what the problem shares with its near ones, from another what is its own.
class SpaceMaker {
 public:
  explicit SpaceMaker(const SyntheticOptions& options)
      : options_(options),
        random_(options.seed),
        own_(options.seed * 7919 + static_cast<uint64_t>(options.shape * 1e6)) {
    for (size_t i = 0; i < options.parameters; ++i) sizes_.push_back(2 + random_.Below(options.values - 1));
    for (size_t i = 0; i < options.parameters; ++i) effects_.push_back(Effects({i}, 0.35));
    for (size_t i = 0; i + 1 < options.parameters; ++i) effects_.push_back(Effects(TwoOrThree(2), 0.2));
    effects_.push_back(Effects(TwoOrThree(3), 0.2));
    for (size_t i = 0; i < 3; ++i) rules_.push_back(Draws(TwoOrThree(2)));
    failures_ = Draws(TwoOrThree(3));
  }

  RecordedSpace Make() {
    RecordedSpace space;
    space.name = absl::StrCat("synthetic-", options_.seed, options_.shape > 0 ? "-near" : "");
    space.best_us = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < options_.parameters; ++i) space.field.features.push_back(absl::StrCat("P", i));
    space.field.features.push_back("waves");
    std::vector<int64_t> values(options_.parameters, 0);
    do {
      if (IsFeasible(values)) Add(values, space);
    } while (Next(values));
    space.field.candidates = space.outcomes.size();
    space.field.codes.resize(space.outcomes.size());
    std::iota(space.field.codes.begin(), space.field.codes.end(), 0);
    space.field.likely.families.assign(space.field.candidates, 0);
    space.field.likely.guesses = {random_.Below(space.field.candidates)};
    return space;
  }

 private:
  std::vector<size_t> TwoOrThree(size_t count) {
    std::vector<size_t> all;
    for (size_t i = 0; i < sizes_.size(); ++i) all.push_back(i);
    random_.Shuffle(all);
    all.resize(std::min(count, all.size()));
    return all;
  }
  size_t Combinations(const std::vector<size_t>& parameters) const {
    size_t count = 1;
    for (size_t parameter : parameters) count *= sizes_[parameter];
    return count;
  }
  Table Effects(std::vector<size_t> parameters, double size) {
    Table table{std::move(parameters), {}};
    for (size_t i = 0; i < Combinations(table.parameters); ++i) {
      const double shared = random_.Normal();
      table.entries.push_back(size * (shared + options_.shape * (options_.shape > 0 ? own_.Normal() : 0)));
    }
    return table;
  }
  Table Draws(std::vector<size_t> parameters) {
    Table table{std::move(parameters), {}};
    for (size_t i = 0; i < Combinations(table.parameters); ++i) table.entries.push_back(random_.Uniform());
    return table;
  }
  bool IsFeasible(const std::vector<int64_t>& values) const {
    const double each = std::cbrt(options_.feasible);
    return std::all_of(rules_.begin(), rules_.end(), [&](const Table& rule) { return rule.At(values, sizes_) < each; });
  }
  bool Next(std::vector<int64_t>& values) const {
    for (size_t i = values.size(); i-- > 0;) {
      if (static_cast<size_t>(++values[i]) < sizes_[i]) return true;
      values[i] = 0;
    }
    return false;
  }
  void Add(const std::vector<int64_t>& values, RecordedSpace& space) {
    double logarithm = std::log(100.0);
    for (const Table& table : effects_) logarithm += table.At(values, sizes_);
    // The last wave runs as long as a full one.
    const double waves = 0.6 * static_cast<double>(1 + values[0]) * static_cast<double>(1 + values[1]);
    logarithm += std::log(std::ceil(waves) / waves);
    logarithm += options_.noise * own_.Normal();
    std::vector<double> features(values.begin(), values.end());
    features.push_back(waves);
    space.field.points.push_back({0, values, std::move(features)});
    const bool fails = failures_.At(values, sizes_) < options_.failing;
    space.outcomes.push_back(fails ? search::Outcome::Failed() : search::Outcome::Timed(std::exp(logarithm)));
    if (!fails) space.best_us = std::min(space.best_us, std::exp(logarithm));
  }

  const SyntheticOptions options_;
  RandomNumbers random_;
  RandomNumbers own_;
  std::vector<size_t> sizes_;
  std::vector<Table> effects_;
  std::vector<Table> rules_;
  Table failures_;
};

}  // namespace

RecordedSpace SyntheticSpace(const SyntheticOptions& options) { return SpaceMaker(options).Make(); }

}  // namespace attune::replay
