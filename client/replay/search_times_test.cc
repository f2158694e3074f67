#include "client/replay/search_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/replay/synthetic_space.h"
#include "server/base/clock.h"

namespace attune::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Candidates of codes that take so long; equally fast.
RecordedSpace Space(std::vector<size_t> codes, std::vector<double> compile_ms) {
  RecordedSpace space;
  space.name = "b1.h1.q1.d64.f16";
  space.field.candidates = codes.size();
  space.outcomes.assign(codes.size(), search::Outcome::Timed(10));
  space.best_us = 10;
  space.field.codes = std::move(codes);
  space.compile_ms = std::move(compile_ms);
  return space;
}

ReplayRun RunAll(const RecordedSpace& space, const Host& host) {
  attune::v1::Strategy description;
  description.set_kind(attune::v1::Strategy::KIND_EXHAUSTIVE);
  return ReplayOn(host, *search::MakeStrategy(description, space.field, 1, SteadyNow), space);
}

constexpr Host kHost = {.compilers = 2, .trial_ms = 100, .think_ms = 0};

TEST(SearchTimes, TrialsWaitForTheirCode) {
  // 0 and 1 are compiled at once, 2 after 1.
  const ReplayRun run = RunAll(Space({0, 1, 2}, {5000, 1000, 2000}), kHost);
  EXPECT_THAT(run.tried, ElementsAre(1, 2, 0));
  EXPECT_DOUBLE_EQ(run.seconds, 5.1);
  EXPECT_EQ(run.codes, 3);
}

TEST(SearchTimes, ACodeIsCompiledOnce) {
  const ReplayRun run = RunAll(Space({0, 0, 0, 0}, {1000}), kHost);
  EXPECT_DOUBLE_EQ(run.seconds, 1.4);
  EXPECT_EQ(run.codes, 1);
}

TEST(SearchTimes, WithoutCompilersAllCodeIsThere) {
  const ReplayRun run = RunAll(Space({0, 1, 2}, {}), {.compilers = 0, .trial_ms = 100});
  EXPECT_THAT(run.tried, UnorderedElementsAre(0, 1, 2));
  EXPECT_DOUBLE_EQ(run.seconds, 0.3);
}

// One code in eight takes long: a search that waited for each batch would wait for one of these six times.
TEST(SearchTimes, GuidedWaitsForNoSlowCode) {
  RecordedSpace space = SyntheticSpace({.seed = 1});
  for (size_t i = 0; i < space.outcomes.size(); ++i) space.compile_ms.push_back(i % 8 == 0 ? 8000 : 1000);
  attune::v1::Strategy description;
  description.set_kind(attune::v1::Strategy::KIND_GUIDED);
  description.set_max_trials(48);
  const ReplayRun run = ReplayOn({.compilers = 12, .trial_ms = 25, .think_ms = 20},
                                 *search::MakeStrategy(description, space.field, 1, SteadyNow), space);
  EXPECT_EQ(run.tried.size(), 48);
  EXPECT_LT(run.seconds, 20);
}

TEST(SearchTimes, OfCodesThatWereInTheStoreTheOthersMedianIsTaken) {
  v1::Recording recording;
  recording.set_problem("b1.h1.q1.d64.f16");
  recording.add_families()->set_name("f");
  const auto add = [&](int code, double compile_ms) {
    v1::Row& row = *recording.add_rows();
    row.set_code(code);
    row.set_compile_ms(compile_ms);
    row.set_verdict(attune::v1::VERDICT_OK);
    row.set_median_us(3);
  };
  add(7, 0);
  add(7, 500);
  add(3, 0);
  add(5, 900);
  add(4, 700);
  const absl::StatusOr<RecordedSpace> space = SpaceOf(recording);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_THAT(space->field.codes, ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT(space->compile_ms, ElementsAre(500, 700, 900, 700));
}

TEST(SearchTimes, SaysWhichSpaceHasNoCompileTimes) {
  const std::vector<RecordedSpace> spaces = {Space({0, 1}, {})};
  const absl::StatusOr<std::string> table = TimeSearches(spaces, {.host = kHost, .seeds = 1});
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(table.status().message()), HasSubstr("b1.h1.q1.d64.f16: no compile time"));
}

}  // namespace
}  // namespace attune::replay
