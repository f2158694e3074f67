#include "server/space/step_fit.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "proto/attune/domain.h"

namespace attune::space {
namespace {

// How many of the values at first, first + 1, ... one function has; each of these is checked to be what it comes to.
size_t Fitted(int64_t first, const std::vector<int64_t>& values) {
  StepFit fit(first, values[0]);
  size_t taken = 1;
  while (taken < values.size() && fit.Take(values[taken])) ++taken;
  const v1::Step step = fit.step();
  EXPECT_GE(step.divide(), 1);
  EXPECT_GE(first + step.add(), 0);
  for (size_t i = 0; i < taken; ++i) {
    EXPECT_EQ(*ValueAt(step, first + static_cast<int64_t>(i)), values[i]) << step.ShortDebugString() << " at " << i;
  }
  return taken;
}

TEST(StepFit, TakesAConstant) {
  EXPECT_EQ(Fitted(5, {7, 7, 7, 7}), 4u);
  EXPECT_EQ(Fitted(5, {7}), 1u);
}

TEST(StepFit, TakesALine) {
  EXPECT_EQ(Fitted(897, {-3, 0, 3, 6, 9}), 5u);
  EXPECT_EQ(Fitted(3, {8, 7, 6}), 3u) << "falling";
}

TEST(StepFit, TakesStepsWhereverTheyBegin) {
  for (int64_t first = 1; first < 40; ++first) {
    std::vector<int64_t> values;
    for (int64_t x = first; x < first + 60; ++x) values.push_back(100 + 6 * ((x + 15) / 16));
    EXPECT_EQ(Fitted(first, values), values.size()) << first;
  }
}

TEST(StepFit, TakesOneStep) {
  EXPECT_EQ(Fitted(1, {1, 1, 1, 5}), 4u);
  EXPECT_EQ(Fitted(1000, {1, 5, 5, 5, 5, 5}), 6u);
}

TEST(StepFit, EndsWhereTheStepsChange) {
  EXPECT_EQ(Fitted(1, {0, 1, 2, 4}), 3u) << "another height";
  EXPECT_EQ(Fitted(1, {0, 0, 1, 1, 2, 3}), 5u) << "a shorter step";
  EXPECT_EQ(Fitted(1, {0, 0, 1, 1, 2, 2, 2}), 6u) << "a longer one";
  EXPECT_EQ(Fitted(1, {0, 0, 0, 1, 2}), 4u) << "the first was longer than the second";
  EXPECT_EQ(Fitted(1, {0, int64_t{1} << 50}), 1u) << "too steep to compute with";
}

}  // namespace
}  // namespace attune::space
