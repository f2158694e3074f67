#include "client/replay/regret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/replay/synthetic_space.h"

namespace attune::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Regret, ASearchEndsAtItsEffortsTrials) {
  const std::vector<RecordedSpace> spaces = {SyntheticSpace({.seed = 3})};
  ASSERT_GT(spaces[0].outcomes.size(), 100);
  const std::vector<Ends> ends =
      SearchToTheEnd(spaces, {.effort = attune::v1::Strategy::EFFORT_QUICK, .seeds = 3, .host = {}});
  ASSERT_THAT(ends, SizeIs(1));
  ASSERT_THAT(ends[0].runs, SizeIs(3));
  for (const SearchEnd& run : ends[0].runs) {
    EXPECT_EQ(run.trials, 24);
    EXPECT_GE(run.regret, 0);
    EXPECT_GT(run.confidence, 0);
  }
}

TEST(Regret, IsNoneWhereAllIsTried) {
  RecordedSpace space = SyntheticSpace({.seed = 3});
  const size_t few = 20;
  space.outcomes.resize(few);
  space.field.points.resize(few);
  space.field.candidates = few;
  space.field.likely = {};
  space.field.codes.resize(few);
  space.best_us = std::numeric_limits<double>::infinity();
  for (const search::Outcome& outcome : space.outcomes) {
    if (outcome.ok) space.best_us = std::min(space.best_us, outcome.us);
  }
  const std::vector<Ends> ends = SearchToTheEnd({space}, {.effort = attune::v1::Strategy::EFFORT_QUICK, .seeds = 1});
  EXPECT_EQ(ends[0].runs[0].trials, few);
  EXPECT_EQ(ends[0].runs[0].regret, 0);
}

TEST(Regret, TellsHowFarAndHowSureAndHowOftenTwoAgree) {
  const std::vector<Ends> ends = {{"one", 100, {{48, 0, 0.99}, {40, 0.03, 0.96, 31, 7.25}, {48, 0.005, 1e-7}}},
                                  {"two", 1000, {{50, 0.015, 0.5}, {50, 0.2, 0.5}, {50, 0.021, 0.2}}}};
  const std::string text = Markdown(ends);
  EXPECT_THAT(text,
              HasSubstr("| one | 100 | 48 | 0.5 % | 3.0 % | 3.0 % | 66.7 % | 66.7 % | 33.3 % | 0.96 | 2 | 1 |\n"));
  EXPECT_THAT(text,
              HasSubstr("| two | 1000 | 50 | 2.1 % | 20.0 % | 20.0 % | 0.0 % | 33.3 % | 33.3 % | 0.5 | 0 | 0 |\n"));
  EXPECT_THAT(text,
              HasSubstr("| all 2 |  | 48 | 1.5 % | 20.0 % | 20.0 % | 33.3 % | 50.0 % | 33.3 % | 0.5 | 2 | 1 |\n"));
  EXPECT_THAT(Csv(ends), HasSubstr("one,100,2,40,0.03000,0.96,31,7.250\n"));
}

}  // namespace
}  // namespace attune::replay
