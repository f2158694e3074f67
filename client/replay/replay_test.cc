#include "client/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/replay/calibration.h"
#include "client/replay/league.h"
#include "client/replay/synthetic_space.h"

namespace attune::replay {
namespace {

using ::testing::HasSubstr;

std::vector<size_t> Tried(const std::string& strategy, const RecordedSpace& space, uint64_t seed,
                          size_t most = 1'000'000, double enough_us = 0) {
  const auto made = StrategyNamed(strategy, space.field, seed);
  EXPECT_TRUE(made.ok()) << made.status();
  return Replay(**made, space, most, enough_us);
}

RecordedSpace Small(uint64_t seed = 1) {
  SyntheticOptions options;
  options.seed = seed;
  options.parameters = 5;
  return SyntheticSpace(options);
}

TEST(Replay, EveryStrategyTriesEachVariantOnce) {
  const RecordedSpace space = Small();
  for (const std::string& strategy : StrategyNames()) {
    const std::vector<size_t> tried = Tried(strategy, space, 1);
    EXPECT_EQ(tried.size(), space.outcomes.size()) << strategy;
    EXPECT_EQ(std::set<size_t>(tried.begin(), tried.end()).size(), space.outcomes.size()) << strategy;
  }
}

TEST(Replay, IsTheSameForTheSameSeed) {
  const RecordedSpace space = Small();
  for (const std::string strategy : {"random", "guided", "evolution"}) {
    EXPECT_EQ(Tried(strategy, space, 3, 40), Tried(strategy, space, 3, 40)) << strategy;
    EXPECT_NE(Tried(strategy, space, 3, 40), Tried(strategy, space, 4, 40)) << strategy;
  }
}

TEST(Replay, EndsWhenThereIsEnough) {
  const RecordedSpace space = Small();
  const std::vector<size_t> tried = Tried("random", space, 1, 1'000'000, space.best_us * 1.05);
  EXPECT_LE(space.outcomes[tried.back()].us, space.best_us * 1.05);
  EXPECT_EQ(TrialsToWithin(0.05, tried, space), tried.size());
  EXPECT_EQ(TrialsToWithin(0.05, {tried.begin(), tried.end() - 1}, space), std::nullopt);
}

TEST(Replay, WhatIsKnownIsNotTriedAndGuidesTheSearch) {
  RecordedSpace space = Small();
  const auto best = std::min_element(space.outcomes.begin(), space.outcomes.end(), [](const auto& a, const auto& b) {
    return (a.ok ? a.us : 1e9) < (b.ok ? b.us : 1e9);
  });
  const auto best_candidate = static_cast<size_t>(best - space.outcomes.begin());
  for (size_t i = 0; i < space.outcomes.size(); ++i) {
    if (i != best_candidate) space.field.known.emplace_back(i, space.outcomes[i]);
  }
  EXPECT_EQ(Tried("guided", space, 1), std::vector<size_t>{best_candidate});
}

// The claim in small: far fewer trials than random needs, on spaces that nothing was chosen on.
TEST(League, GuidedNeedsFewerTrialsThanRandom) {
  std::vector<RecordedSpace> spaces;
  for (uint64_t seed = 101; seed <= 104; ++seed) {
    SyntheticOptions options;
    options.seed = seed;
    options.parameters = 6;
    spaces.push_back(SyntheticSpace(options));
  }
  LeagueOptions options;
  options.strategies = {"random", "guided"};
  options.seeds = 5;
  options.limit = 1;
  const auto standings = PlayLeague(spaces, options);
  ASSERT_TRUE(standings.ok()) << standings.status();
  size_t random = 0;
  size_t guided = 0;
  for (const Standing& standing : *standings) {
    for (const auto& trials : standing.trials[1]) {
      ASSERT_TRUE(trials.has_value());
      (standing.strategy == "random" ? random : guided) += *trials;
    }
  }
  EXPECT_LT(guided * 2, random);
}

// Recorded on a CPU (docs/replay.md).
TEST(League, GuidedNeedsFewerTrialsThanRandomOnARecording) {
  const auto recording = ReadRecording(ATTUNE_SOURCE_DIR "/tests/replay/b2.h2.q64.kv96.d64.f16.rec");
  ASSERT_TRUE(recording.ok()) << recording.status();
  auto space = SpaceOf(*recording);
  ASSERT_TRUE(space.ok()) << space.status();
  space->field.likely.guesses.clear();
  size_t random = 0;
  size_t guided = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    random += Tried("random", *space, seed, 1'000'000, space->best_us * 1.05).size();
    guided += Tried("guided", *space, seed, 1'000'000, space->best_us * 1.05).size();
  }
  EXPECT_LT(guided * 2, random);
}

// At a twentieth of the space it is not sure of anything yet: its limit ends it.
TEST(Calibration, CountsRunsThatEndedSure) {
  const auto recording = ReadRecording(ATTUNE_SOURCE_DIR "/tests/replay/b2.h2.q64.kv96.d64.f16.rec");
  ASSERT_TRUE(recording.ok()) << recording.status();
  auto space = SpaceOf(*recording);
  ASSERT_TRUE(space.ok()) << space.status();
  space->field.likely.guesses.clear();
  const auto sure = [&](double limit) {
    const auto calibrations = Calibrate({*space}, /*seeds=*/1, limit);
    EXPECT_TRUE(calibrations.ok()) << calibrations.status();
    return calibrations->front().sure;
  };
  EXPECT_EQ(sure(0.05), 0);
  EXPECT_EQ(sure(0.5), 1);
}

TEST(League, AQuantileBeyondTheLimitIsNone) {
  EXPECT_EQ(Quantile({5, std::nullopt, 3}, 0.5), 5);
  EXPECT_EQ(Quantile({5, std::nullopt, 3}, 0.95), std::nullopt);
}

TEST(League, TheCsvHasEachSeedsRun) {
  Standing standing{"here", "random", 9, {{5, std::nullopt, 3}}, {}};
  LeagueOptions options;
  options.shares = {0.02};
  EXPECT_EQ(Csv({standing}, options),
            "space,variants,strategy,within,seed,trials\nhere,9,random,0.02,1,5\nhere,9,random,0.02,2,\n"
            "here,9,random,0.02,3,3\n");
}

TEST(League, TheCurvesHaveEachSeedsImprovements) {
  const Standing standing{"here", "random", 9, {}, {{{1, 12.5}, {4, 10}}, {}, {{2, 11}}}};
  EXPECT_EQ(CurvesCsv({standing}),
            "space,strategy,seed,trial,best_us\nhere,random,1,1,12.5\nhere,random,1,4,10\nhere,random,3,2,11\n");
}

TEST(League, AWholeRunGoesOnToTheBest) {
  LeagueOptions options;
  options.strategies = {"random"};
  options.seeds = 1;
  options.limit = 1;
  options.shares = {0.5};
  const RecordedSpace space = Small();
  for (bool whole : {false, true}) {
    options.whole = whole;
    const auto standings = PlayLeague({space}, options);
    ASSERT_TRUE(standings.ok()) << standings.status();
    const std::vector<Improvement>& improvements = standings->front().improvements.front();
    EXPECT_EQ(improvements.back().us == space.best_us, whole);
    for (size_t i = 1; i < improvements.size(); ++i) {
      EXPECT_LT(improvements[i].us, improvements[i - 1].us);
      EXPECT_GT(improvements[i].trial, improvements[i - 1].trial);
    }
  }
}

TEST(League, AnUnknownStrategyIsAMistake) {
  const auto strategy = StrategyNamed("genetic", search::Field(), 1);
  EXPECT_EQ(strategy.status().message(), "--strategies has 'genetic'; allowed: evolution, exhaustive, guided, random");
}

TEST(SyntheticSpace, IsTheSameForTheSameSeedAndItsNearOneHasTheSameVariants) {
  const RecordedSpace one = Small(7);
  const RecordedSpace same = Small(7);
  SyntheticOptions options;
  options.seed = 7;
  options.parameters = 5;
  options.shape = 0.3;
  const RecordedSpace near = SyntheticSpace(options);
  ASSERT_EQ(one.outcomes.size(), same.outcomes.size());
  ASSERT_EQ(one.outcomes.size(), near.outcomes.size());
  bool differs = false;
  for (size_t i = 0; i < one.outcomes.size(); ++i) {
    EXPECT_EQ(one.outcomes[i].us, same.outcomes[i].us);
    EXPECT_EQ(one.field.points[i].values, near.field.points[i].values);
    differs |= one.outcomes[i].us != near.outcomes[i].us;
  }
  EXPECT_TRUE(differs);
  EXPECT_NE(Small(8).outcomes.size(), 0);
}

v1::Recording TwoRows() {
  v1::Recording recording;
  recording.set_problem("b1.h1.q128.d64.f16");
  v1::Family& family = *recording.add_families();
  family.set_name("tiles");
  family.add_parameters("BLOCK");
  recording.add_features("BLOCK");
  for (int64_t block : {16, 32}) {
    v1::Row& row = *recording.add_rows();
    row.add_values(block);
    row.add_features(static_cast<double>(block));
    row.set_verdict(block == 16 ? attune::v1::VERDICT_OK : attune::v1::VERDICT_CRASHED);
    row.set_median_us(block == 16 ? 7.5 : 0);
  }
  return recording;
}

TEST(Recording, ComesBackFromItsFile) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "two.rec").string();
  ASSERT_TRUE(WriteRecording(TwoRows(), path).ok());
  const auto read = ReadRecording(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), TwoRows().SerializeAsString());
  const auto space = SpaceOf(*read);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->best_us, 7.5);
  EXPECT_FALSE(space->outcomes[1].ok);
}

TEST(Recording, MistakesAreNamed) {
  v1::Recording recording = TwoRows();
  recording.mutable_rows(1)->add_values(3);
  EXPECT_THAT(std::string(SpaceOf(recording).status().message()), HasSubstr("rows[1].values has 2 entries"));
  recording = TwoRows();
  recording.mutable_rows(1)->set_family(1);
  EXPECT_THAT(std::string(SpaceOf(recording).status().message()), HasSubstr("rows[1].family is 1; allowed: 0 to 0"));
  recording = TwoRows();
  recording.set_problem("b1.h1");
  EXPECT_TRUE(absl::IsInvalidArgument(SpaceOf(recording).status()));
  recording = TwoRows();
  recording.mutable_rows()->DeleteSubrange(0, 1);
  EXPECT_THAT(std::string(SpaceOf(recording).status().message()), HasSubstr("no row is OK"));
  EXPECT_TRUE(absl::IsNotFound(ReadRecording("/no/such/file").status()));
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "text.rec").string();
  FILE* file = fopen(path.c_str(), "w");
  fputs("not compressed", file);
  fclose(file);
  EXPECT_TRUE(absl::IsDataLoss(ReadRecording(path).status()));
}

}  // namespace
}  // namespace attune::replay
