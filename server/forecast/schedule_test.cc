#include "server/forecast/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/search/field.h"

namespace attune::forecast {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

Schedule ScheduleOf(const std::string& problem, int64_t sms, const WorkItems& work) {
  return Schedules(*ParseProblem(problem), sms).Of(work);
}

TEST(Schedule, OfEqualItemsTheLastWaveIsAsLongAsTheOthers) {
  // 4 heads of 3 tiles of 64 rows, 4 tiles of keys each, and the start: 12 items on 5 SMs are three waves.
  const Schedule schedule = ScheduleOf("b1.h4.q130.kv256.d64.f16", 5, {.block_m = 64, .block_n = 64});
  EXPECT_EQ(schedule.items, 12);
  EXPECT_EQ(schedule.longest, 5);
  EXPECT_EQ(schedule.total, 60);
  EXPECT_EQ(schedule.busiest_sm, 15);
  EXPECT_EQ(schedule.busiest_slot, 15);
}

TEST(Schedule, AnSmThatHoldsSeveralWorksOnThemAtOnce) {
  const Schedule schedule = ScheduleOf("b1.h4.q130.kv256.d64.f16", 5, {.block_m = 64, .block_n = 64, .resident = 2});
  EXPECT_EQ(schedule.busiest_sm, 15);
  EXPECT_EQ(schedule.busiest_slot, 10) << "12 items in 10 slots";
}

TEST(Schedule, UnderACausalMaskItemsHaveTheTilesThatTheirLastRowSees) {
  // Tiles of 64 of 256 rows see 1, 2, 3 and 4 tiles of keys.
  const Schedule schedule = ScheduleOf("b1.h1.q256.d64.f16.causal", 1, {.block_m = 64, .block_n = 64});
  EXPECT_EQ(schedule.longest, 5);
  EXPECT_EQ(schedule.total, 1 + 2 + 3 + 4 + 4);
  EXPECT_EQ(schedule.busiest_sm, schedule.total);
}

TEST(Schedule, TheLongestFirstEndSooner) {
  // On two SMs 2, 3, 4, 5 in turn: 2 + 4 and 3 + 5; the longest first: 5 + 2 and 4 + 3.
  WorkItems work = {.block_m = 64, .block_n = 64};
  EXPECT_EQ(ScheduleOf("b1.h1.q256.d64.f16.causal", 2, work).busiest_sm, 8);
  work.longest_first = true;
  EXPECT_EQ(ScheduleOf("b1.h1.q256.d64.f16.causal", 2, work).busiest_sm, 7);
}

TEST(Schedule, SplitsShareTheTilesOfKeys) {
  const Schedule schedule = ScheduleOf("b1.h1.q1.kv640.d64.f16", 8, {.block_m = 16, .block_n = 64, .splits = 4});
  EXPECT_EQ(schedule.items, 4);
  EXPECT_EQ(schedule.longest, 4) << "10 tiles in 4 parts: 2, 3, 2 and 3, and the start";
  EXPECT_EQ(schedule.total, 14);
}

TEST(Schedule, AWindowHidesTheFirstKeysToo) {
  // A row at the end of 1,024 keys sees 100: the tiles from 924 on.
  EXPECT_EQ(ScheduleOf("b1.h1.q1.kv1024.d64.f16.window100", 1, {.block_m = 16, .block_n = 64}).longest, 3);
}

TEST(Schedule, PackedHeadsShareAnItemsRows) {
  const Schedule schedule = ScheduleOf("b1.h32.kvh8.q4.kv64.d64.f16", 100, {.block_m = 16, .block_n = 64, .pack = 4});
  EXPECT_EQ(schedule.items, 8);
}

TEST(Schedule, OfManyWavesTheMeanIsEnough) {
  const Schedule schedule = ScheduleOf("b8.h16.q8192.d64.f16.causal", 4, {.block_m = 64, .block_n = 64});
  EXPECT_EQ(schedule.busiest_sm, schedule.total / 4);
}

TEST(Schedule, ColumnsAreOfTheFamilysNames) {
  const std::vector<std::string> names = {"BLOCK_M", "BLOCK_N", "resident", "warps"};
  Schedules schedules(*ParseProblem("b1.h4.q130.kv256.d64.f16"), 5);
  EXPECT_THAT(Schedules::ColumnNames(), SizeIs(10));
  // 12 items an SM, of 5 steps; 2 waves of 10; 15 steps where 12 on average are needed; two at once in 20 of 15 steps;
  // 15 steps of 64 * 64 pairs on 5 SMs for 4 heads of 130 * 256.
  const double waste = 15.0 * 64 * 64 * 5 / (4 * 130 * 256);
  EXPECT_THAT(schedules.Columns(names, std::vector<double>{64, 64, 2, 4}),
              ElementsAre(2.4, 5, 10, 15.0 * 5 / 60, 10.0 * 2 / 15, waste, waste * 20 / 15, 8, 64, 64));
  EXPECT_THAT(schedules.Columns(names, std::vector<double>{64, search::kMissing, 2, 4}), Each(search::kMissing));
  Schedules longest(*ParseProblem("b1.h1.q1048577.d64.f16"), 5);
  EXPECT_THAT(longest.Columns(names, std::vector<double>{1, 64, 2, 4}), Each(search::kMissing));
}

}  // namespace
}  // namespace attune::forecast
