#include "server/catalog/answers/predicted_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "server/base/device_profile.h"
#include "server/catalog/answers/problem_distance.h"

namespace attune::catalog {
namespace {

struct Measured {
  Problem problem;
  int64_t ctas = 0;
  double us = 0;
};

std::vector<Measured> Recorded() {
  std::ifstream file(ATTUNE_SOURCE_DIR "/server/catalog/testdata/h200_times.txt");
  std::vector<Measured> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string problem;
    Measured one;
    words >> problem >> one.ctas >> one.us;
    const absl::StatusOr<Problem> parsed = ParseProblem(problem);
    EXPECT_TRUE(parsed.ok() && words) << line;
    if (!parsed.ok()) continue;
    one.problem = *parsed;
    all.push_back(one);
  }
  return all;
}

// The other that a NEAREST answer would come from.
const Measured* NearestOf(const Measured& asked, const std::vector<Measured>& all) {
  const Measured* nearest = nullptr;
  double least = 6;
  for (const Measured& other : all) {
    const std::optional<double> distance = Distance(asked.problem, other.problem);
    if (!distance.has_value() || *distance == 0 || *distance > least) continue;
    least = *distance;
    nearest = &other;
  }
  return nearest;
}

TEST(PredictTime, HoldsForWhatAnH200WasSeenToTake) {
  const v1::Device device = *DeviceProfile("h200");
  const std::vector<Measured> all = Recorded();
  std::vector<double> errors;  // factors, at least 1
  int within = 0;
  for (const Measured& asked : all) {
    const Measured* nearest = NearestOf(asked, all);
    if (nearest == nullptr) continue;
    const v1::PredictedTime time =
        PredictTime({asked.problem, asked.ctas}, nearest->us, {nearest->problem, nearest->ctas}, device);
    if (asked.us >= time.low_us() && asked.us <= time.high_us()) ++within;
    errors.push_back(std::exp(std::abs(std::log(asked.us / time.us()))));
    EXPECT_LE(errors.back(), 2) << ToText(asked.problem) << " from " << ToText(nearest->problem) << ": " << time.us()
                                << " us predicted, " << asked.us << " us measured";
  }
  ASSERT_GE(errors.size(), 60);
  EXPECT_GE(within, 0.8 * static_cast<double>(errors.size()));
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  EXPECT_LE(median, 1.2);
  RecordProperty("problems", std::to_string(errors.size()));
  RecordProperty("median", std::to_string(median));
  RecordProperty("worst", std::to_string(errors.back()));
  RecordProperty("within", std::to_string(within));
}

TEST(PredictTime, TheSameLaunchTakesTheSame) {
  const Problem problem = *ParseProblem("b2.h8.q512.d64.f16");
  const v1::Device device = *DeviceProfile("l4");
  const v1::PredictedTime time = PredictTime({problem, 64}, 20, {problem, 64}, device);
  EXPECT_DOUBLE_EQ(time.us(), 20);
  EXPECT_LT(time.low_us(), 20);
  EXPECT_GT(time.high_us(), 20);
}

TEST(PredictTime, WhatFillsASmallPartOfTheSmsTakesNoLessThanOneWave) {
  const Problem one = *ParseProblem("b1.h1.q1024.d64.f16");
  const Problem eight = *ParseProblem("b8.h1.q1024.d64.f16");
  const v1::Device device = *DeviceProfile("h200");
  EXPECT_DOUBLE_EQ(PredictTime({eight, 64}, 20, {one, 8}, device).us(), 20);
  EXPECT_GT(PredictTime({eight, 8 * 132}, 20, {one, 132}, device).us(), 100);
}

TEST(PredictTime, ADeviceOfUnknownRatesCountsArithmetic) {
  v1::Device device;
  device.set_compute_units(2);
  const Problem one = *ParseProblem("b1.h1.q64.d64.f16");
  const Problem two = *ParseProblem("b1.h1.q128.d64.f16");
  EXPECT_DOUBLE_EQ(PredictTime({two, 4}, 1004, {one, 4}, device).us(), 4004);
}

}  // namespace
}  // namespace attune::catalog
