#include "client/replay/warm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace attune::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Recording RecordingOf(const std::string& problem) {
  v1::Recording recording;
  recording.set_problem(problem);
  for (const char* name : {"tiles", "waves"}) {
    v1::Family& family = *recording.add_families();
    family.set_name(name);
    family.set_source_hash("source one");
    family.add_parameters("BLOCK");
  }
  recording.add_features("BLOCK");
  for (int family : {0, 1}) {
    v1::Row& row = *recording.add_rows();
    row.set_family(family);
    row.add_values(16);
    row.add_features(16);
    row.set_verdict(attune::v1::VERDICT_OK);
    row.set_median_us(10);
  }
  return recording;
}

// How far away those are that the first is told of.
std::vector<double> ToldTheFirst(const std::vector<v1::Recording>& recordings, TunedWhere where = TunedWhere::kHere) {
  std::vector<RecordedSpace> spaces;
  for (const v1::Recording& recording : recordings) {
    auto space = SpaceOf(recording);
    EXPECT_TRUE(space.ok()) << space.status();
    spaces.push_back(*std::move(space));
  }
  Warm(recordings, where, spaces);
  std::vector<double> distances;
  for (const search::Neighbour& neighbour : spaces.front().field.neighbours) {
    EXPECT_THAT(neighbour.rows, SizeIs(2));
    distances.push_back(neighbour.distance);
  }
  return distances;
}

TEST(Warm, TellsOfNearOnesNearestFirst) {
  EXPECT_THAT(ToldTheFirst({RecordingOf("b1.h1.q128.d64.f16"), RecordingOf("b1.h1.q512.d64.f16"),
                            RecordingOf("b2.h1.q128.d64.f16"), RecordingOf("b1.h1.q2048.d64.f16"),
                            RecordingOf("b1.h1.q128.d128.f16")}),
              ElementsAre(1, 4));
}

// As the daemon learns from so many.
TEST(Warm, TellsOfTheSixNearest) {
  std::vector<v1::Recording> recordings = {RecordingOf("b1.h1.q128.d64.f16")};
  for (int batch = 2; batch <= 9; ++batch) {
    recordings.push_back(RecordingOf("b" + std::to_string(batch) + ".h1.q128.d64.f16"));
  }
  EXPECT_THAT(ToldTheFirst(recordings), SizeIs(6));
}

TEST(Warm, WhatWasShippedForAnotherModelSaysNothing) {
  std::vector<v1::Recording> recordings = {RecordingOf("b1.h1.q128.d64.f16"), RecordingOf("b2.h1.q128.d64.f16"),
                                           RecordingOf("b4.h1.q128.d64.f16")};
  recordings[2].set_device_model("another");
  EXPECT_THAT(ToldTheFirst(recordings), ElementsAre(1, 2));
  EXPECT_THAT(ToldTheFirst(recordings, TunedWhere::kBeforeShipping), ElementsAre(1));
}

TEST(Warm, OtherSourcesOrFamiliesSayNothing) {
  const v1::Recording first = RecordingOf("b1.h1.q128.d64.f16");
  v1::Recording other = RecordingOf("b2.h1.q128.d64.f16");
  other.mutable_families(1)->set_source_hash("source two");
  EXPECT_THAT(ToldTheFirst({first, other}), IsEmpty());
  other = RecordingOf("b2.h1.q128.d64.f16");
  other.mutable_families()->SwapElements(0, 1);  // what is family 0 here is 1 there
  EXPECT_THAT(ToldTheFirst({first, other}), IsEmpty());
  other = RecordingOf("b2.h1.q128.d64.f16");
  other.set_features(0, "TILE");
  EXPECT_THAT(ToldTheFirst({first, other}), IsEmpty());
}

}  // namespace
}  // namespace attune::replay
