#include "client/replay/seeding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/device_profile.h"
#include "server/space/family.h"

namespace attune::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAsked[] = "b1.h1.q64.kv4096.d64.f16";
constexpr char kNear[] = "b1.h1.q64.kv2048.d64.f16";
constexpr char kFar[] = "b32.h1.q64.kv4096.d64.f16";  // five octaves

// Each has the guess of attention_mma with several stages of keys, of which one is the fastest.
class SeedingTest : public ::testing::Test {
 protected:
  SeedingTest() : families_(*space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src")), device_(*DeviceProfile("h200")) {
    std::erase_if(families_, [](const auto& family) { return family->name() != "attention_mma"; });
  }

  // `us[i]`: the time with i + 1 stages.
  v1::Recording RecordingOf(const std::string& problem, const std::vector<double>& us,
                            const std::string& model = "NVIDIA H200") const {
    v1::Recording recording;
    recording.set_problem(problem);
    recording.set_device_class(model);
    recording.set_device_model(model);
    v1::Family& family = *recording.add_families();
    family.set_name(families_[0]->name());
    family.set_source_hash(families_[0]->source_hash);
    const space::Variant guess = *space::Guess(families_[0], *ParseProblem(kAsked), device_);
    for (const auto& parameter : families_[0]->manifest.parameters()) family.add_parameters(parameter.name());
    for (size_t i = 0; i < us.size(); ++i) {
      v1::Row& row = *recording.add_rows();
      row.set_verdict(attune::v1::VERDICT_OK);
      row.set_median_us(us[i]);
      row.set_guess(i == 0);
      for (size_t p = 0; p < guess.values.size(); ++p) {
        const std::string& name = family.parameters(static_cast<int>(p));
        row.add_values(name == "K_STAGES" || name == "V_STAGES" ? static_cast<int64_t>(i + 1) : guess.values[p]);
      }
    }
    return recording;
  }
  // Of the first recording, after it was seeded from the others.
  std::vector<size_t> GuessesOfFirst(const std::vector<v1::Recording>& recordings, TunedWhere where) const {
    std::vector<RecordedSpace> spaces;
    for (const v1::Recording& recording : recordings) spaces.push_back(*SpaceOf(recording));
    const absl::Status status = SeedFromOthers(recordings, where, families_, {}, spaces);
    EXPECT_TRUE(status.ok()) << status;
    return spaces[0].field.likely.guesses;
  }

  // Of nine, stages 3 are the fastest of all but the first and the nearest of that.
  std::vector<v1::Recording> Nine() const {
    const auto ample = [&](const std::string& problem, size_t fastest) {
      std::vector<double> us(24, 50);
      us[fastest] = 10;
      return RecordingOf(problem, us);
    };
    std::vector<v1::Recording> recordings = {ample(kAsked, 0), ample("b1.h1.q64.kv4000.d64.f16", 1)};
    for (const char* length : {"1024", "1500", "3000", "5000", "6000", "7000", "9000"}) {
      recordings.push_back(ample(absl::StrCat("b1.h1.q64.kv", length, ".d64.f16"), 2));
    }
    return recordings;
  }

  Families families_;
  attune::v1::Device device_;
};

TEST_F(SeedingTest, PutsWhatOthersAreServedBeforeTheGuessNearestFirst) {
  EXPECT_THAT(
      GuessesOfFirst({RecordingOf(kAsked, {9, 9, 9}), RecordingOf(kFar, {2, 1, 3}), RecordingOf(kNear, {2, 3, 1})},
                     TunedWhere::kHere),
      ElementsAre(2, 1, 0));
}

// As a fresh install answers from four octaves at most where it was tuned on the same model, three where on another.
TEST_F(SeedingTest, WhatWasShippedIsFarther) {
  EXPECT_THAT(
      GuessesOfFirst({RecordingOf(kAsked, {9, 9, 9}), RecordingOf(kFar, {2, 1, 3}), RecordingOf(kNear, {2, 3, 1})},
                     TunedWhere::kBeforeShipping),
      ElementsAre(2, 0));
  const v1::Recording elsewhere = RecordingOf(kNear, {2, 3, 1}, "NVIDIA H100 80GB HBM3");
  EXPECT_THAT(GuessesOfFirst({RecordingOf(kAsked, {9, 9, 9}), elsewhere}, TunedWhere::kBeforeShipping),
              ElementsAre(2, 0));
  EXPECT_THAT(GuessesOfFirst({RecordingOf(kAsked, {9, 9, 9}), elsewhere}, TunedWhere::kHere), ElementsAre(0));
}

TEST_F(SeedingTest, TheSameProblemSaysNothing) {
  const v1::Recording elsewhere = RecordingOf(kAsked, {2, 3, 1}, "NVIDIA H100 80GB HBM3");
  EXPECT_THAT(GuessesOfFirst({RecordingOf(kAsked, {9, 9, 9}), elsewhere}, TunedWhere::kBeforeShipping), ElementsAre(0));
}

TEST_F(SeedingTest, WhatWasNotRecordedIsLeftOut) {
  EXPECT_THAT(GuessesOfFirst({RecordingOf(kAsked, {9, 9}), RecordingOf(kNear, {2, 3, 1})}, TunedWhere::kHere),
              ElementsAre(0));
}

TEST_F(SeedingTest, BeginsWithWhatIsExpectedWhereEnoughWasTuned) {
  std::vector<v1::Recording> recordings = Nine();
  std::vector<RecordedSpace> spaces;
  for (const v1::Recording& recording : recordings) spaces.push_back(*SpaceOf(recording));
  ASSERT_TRUE(SeedFromOthers(recordings, TunedWhere::kHere, families_, {}, spaces).ok());
  const search::Field& field = spaces[0].field;
  EXPECT_THAT(field.likely.guesses, ElementsAre(1, 2, 0)) << "the nearest's, what most found, the guess";
  ASSERT_EQ(field.expected.size(), 24);
  EXPECT_EQ(std::min_element(field.expected.begin(), field.expected.end()) - field.expected.begin(), 2);
  recordings.back() = RecordingOf(recordings.back().problem(), {50, 50, 10});
  spaces[0].field = SpaceOf(recordings[0])->field;
  ASSERT_TRUE(SeedFromOthers(recordings, TunedWhere::kHere, families_, {}, spaces).ok());
  EXPECT_TRUE(spaces[0].field.expected.empty()) << "seven others, and one of three variants, are too few";
}

// Of the same model of device.
TEST_F(SeedingTest, WhatWasShippedSaysWhatIsExpectedToo) {
  std::vector<v1::Recording> recordings = Nine();
  std::vector<RecordedSpace> spaces;
  for (const v1::Recording& recording : recordings) spaces.push_back(*SpaceOf(recording));
  const std::vector<RecordedSpace> fresh = spaces;
  ASSERT_TRUE(SeedFromOthers(recordings, TunedWhere::kBeforeShipping, families_, {kAsked}, spaces).ok());
  EXPECT_THAT(spaces[0].field.likely.guesses, ElementsAre(1, 2, 0));
  EXPECT_EQ(spaces[0].field.expected.size(), 24);
  EXPECT_TRUE(spaces[1].field.expected.empty()) << "nobody asked for it";
  for (size_t i = 1; i < recordings.size(); ++i) recordings[i].set_device_model("NVIDIA H100 80GB HBM3");
  spaces = fresh;
  ASSERT_TRUE(SeedFromOthers(recordings, TunedWhere::kBeforeShipping, families_, {kAsked}, spaces).ok());
  EXPECT_THAT(spaces[0].field.likely.guesses, ElementsAre(1, 2, 0)) << "the two nearest winners";
  EXPECT_TRUE(spaces[0].field.expected.empty());
}

TEST_F(SeedingTest, SaysWhatItCannotSeedFrom) {
  v1::Recording other = RecordingOf(kNear, {1});
  other.mutable_families(0)->set_source_hash("another");
  std::vector<RecordedSpace> spaces = {*SpaceOf(other)};
  EXPECT_EQ(SeedFromOthers({other}, TunedWhere::kHere, families_, {}, spaces).code(),
            absl::StatusCode::kFailedPrecondition);
  const v1::Recording unknown = RecordingOf(kNear, {1}, "a card");
  EXPECT_THAT(std::string(SeedFromOthers({unknown}, TunedWhere::kHere, families_, {}, spaces).message()),
              HasSubstr("recorded on 'a card'"));
}

}  // namespace
}  // namespace attune::replay
