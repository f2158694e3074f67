#include "server/search/tree_ensemble.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/search/random_numbers.h"

namespace attune::search {
namespace {

struct Predicted {
  double mean = 0;
  double deviation = 0;
  std::vector<double> row;
};

// Of testdata/extra_trees.py.
struct Golden {
  TrainingRows learned;
  std::vector<Predicted> predicted;
};

Golden ReadGolden() {
  Golden golden;
  std::ifstream file(ATTUNE_SOURCE_DIR "/server/search/testdata/extra_trees.csv");
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> words = absl::StrSplit(line, ',');
    if (words.size() < 4 || words[0][0] == '#') continue;
    std::vector<double> numbers(words.size() - 1);
    for (size_t i = 0; i < numbers.size(); ++i) EXPECT_TRUE(absl::SimpleAtod(words[i + 1], &numbers[i])) << line;
    const std::vector<double> row(numbers.begin() + 2, numbers.end());
    if (words[0] == "learned") golden.learned.Add(row, numbers[1], numbers[0]);
    if (words[0] == "predicted") golden.predicted.push_back({numbers[0], numbers[1], row});
  }
  return golden;
}

// Both have thousands of trees: they differ by what is left of the draws. Spreads differ more: few trees make them.
TEST(TreeEnsemble, PredictsWhatScikitLearnPredicts) {
  const Golden golden = ReadGolden();
  ASSERT_EQ(golden.learned.size(), 90);
  ASSERT_EQ(golden.predicted.size(), 30);
  const TreeEnsemble ensemble = TreeEnsemble::Fit(golden.learned, {.trees = 4000, .min_leaf = 2, .seed = 1});
  for (const Predicted& expected : golden.predicted) {
    const TreeEnsemble::Prediction prediction = ensemble.Predict(expected.row);
    EXPECT_NEAR(prediction.mean, expected.mean, 0.12 * expected.deviation);
    EXPECT_NEAR(prediction.deviation, expected.deviation, 0.2 * expected.deviation);
  }
}

TrainingRows Steps() {
  TrainingRows rows;
  for (int i = 0; i < 40; ++i) rows.Add({static_cast<double>(i), 7}, i < 20 ? 1 : 3);
  return rows;
}

TEST(TreeEnsemble, IsTheSameForTheSameSeed) {
  const TreeEnsemble one = TreeEnsemble::Fit(Steps(), {.seed = 5});
  const TreeEnsemble same = TreeEnsemble::Fit(Steps(), {.seed = 5});
  const TreeEnsemble other = TreeEnsemble::Fit(Steps(), {.seed = 6});
  bool differs = false;
  for (double x = 0; x < 40; x += 0.5) {
    EXPECT_EQ(one.Predict({{x, 7.0}}).mean, same.Predict({{x, 7.0}}).mean);
    differs |= one.Predict({{x, 7.0}}).mean != other.Predict({{x, 7.0}}).mean;
  }
  EXPECT_TRUE(differs);
}

TEST(TreeEnsemble, LearnsAStepAndIsUnsureWhereItLies) {
  const TreeEnsemble ensemble = TreeEnsemble::Fit(Steps(), {.min_leaf = 1});
  EXPECT_NEAR(ensemble.Predict({{3.0, 7.0}}).mean, 1, 1e-9);
  EXPECT_NEAR(ensemble.Predict({{36.0, 7.0}}).mean, 3, 1e-9);
  EXPECT_EQ(ensemble.Predict({{3.0, 7.0}}).deviation, 0);
  EXPECT_GT(ensemble.Predict({{19.5, 7.0}}).deviation, 0.2);
}

TEST(TreeEnsemble, AHeavyRowPullsItsLeaf) {
  TrainingRows rows;
  rows.Add({1.0}, 0, 1);
  rows.Add({1.0}, 10, 9);
  EXPECT_NEAR(TreeEnsemble::Fit(rows, {}).Predict({{1.0}}).mean, 9, 1e-9);
}

TEST(TreeEnsemble, KeepsRowsEnoughInEveryLeaf) {
  TrainingRows rows;
  RandomNumbers random(3);
  for (int i = 0; i < 9; ++i) rows.Add({random.Uniform()}, random.Uniform());
  const double mean = TreeEnsemble::Fit(rows, {.min_leaf = 5}).Predict({{0.5}}).mean;
  double sum = 0;
  for (double target : rows.targets) sum += target;
  EXPECT_NEAR(mean, sum / 9, 1e-12);  // 9 rows do not part into 5 and 5
}

TEST(TreeEnsemble, OfNothingExpectsNothing) {
  const TreeEnsemble ensemble = TreeEnsemble::Fit(TrainingRows(), {});
  EXPECT_EQ(ensemble.Predict({}).mean, 0);
  EXPECT_EQ(ensemble.Predict({}).deviation, 0);
}

}  // namespace
}  // namespace attune::search
