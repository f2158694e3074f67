// The protocol on devices whose true times are known: how often it is wrong. The tables are printed as they stand in
// docs/benchmarks/2026-11-23-simulated-truth.md.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "server/measure/cycles.h"
#include "server/measure/measure.h"
#include "server/measure/paired_rounds.h"
#include "server/measure/testing/simulated_gpu.h"

namespace attune::measure {
namespace {

constexpr double kUs = 100;
constexpr int kTrials = 1000;
constexpr int kPlayOffs = 1000;
constexpr int kJobs = 30;
constexpr int kTrialsOfAJob = 60;
constexpr int kAnchorEvery = 20;

double Share(int count, int of) { return static_cast<double>(count) / of; }

Options OptionsOn(const SimulatedGpu& gpu) {
  Options options;
  options.now = [&gpu] { return gpu.now; };
  return options;
}

// Whether what the device did meanwhile is part of the truth: it lasts longer than a trial.
bool IsSlow(const Noise& noise) { return noise.drift > 0 || noise.dwell > 2 || noise.rho > 0.5; }

bool Covers(double low, double truth, double high) { return low <= truth && truth <= high; }

// A trial's interval, against the median of its own session.
double TrialCoverage(const Noise& noise) {
  const double long_run = SimulatedGpu::LongRunMedian(noise), own = SimulatedGpu::SampleMedian(noise);
  int covered = 0;
  for (int i = 0; i < kTrials; ++i) {
    SimulatedGpu gpu(noise, 1000 + i);
    SimulatedTimer timer(gpu, kUs);
    const SimulatedGpu::Mark begin = gpu.Now();
    const v1::Timing timing = Measure(timer, v1::POLICY_HOT, OptionsOn(gpu), 0).value();
    const double truth = timer.us() * (IsSlow(noise) ? gpu.WindowMedian(begin, own) : long_run);
    covered += Covers(timing.low_us(), truth, timing.high_us()) ? 1 : 0;
  }
  return Share(covered, kTrials);
}

// Of variants that all take the same, how many are given up, when an anchor is timed anew every kAnchorEvery trials and
// where a trial was faster than it.
double GivenUpEqual(Noise noise) {
  noise.drift *= 100.0 / (kTrialsOfAJob * 60);  // over the job, not over a play-off
  int given_up = 0;
  for (int job = 0; job < kJobs; ++job) {
    SimulatedGpu gpu(noise, 5000 + job);
    double anchor_us = 0, anchor_low_us = 0;
    int since = 0;
    for (int i = 0; i < kTrialsOfAJob; ++i) {
      SimulatedTimer timer(gpu, kUs);
      const v1::Timing timing = Measure(timer, v1::POLICY_HOT, OptionsOn(gpu), anchor_us).value();
      given_up += timing.given_up() ? 1 : 0;
      if (anchor_us > 0 && timing.high_us() >= anchor_low_us && ++since < kAnchorEvery) continue;
      SimulatedTimer again(gpu, kUs);
      const v1::Timing anchor = Measure(again, v1::POLICY_HOT, OptionsOn(gpu), 0).value();
      anchor_us = anchor.high_us();
      anchor_low_us = anchor.low_us();
      since = 0;
    }
  }
  return Share(given_up, kJobs * kTrialsOfAJob);
}

struct PlayOffShares {
  double promoted = 0;  // any challenger
  double same = 0;      // of all challengers
  double gain_covered = 0;
  double time_covered = 0;
  double cycles = 0;  // on average
};

// An incumbent and `challengers` that are faster by `gain`.
PlayOffShares PlayOffs(const Noise& noise, size_t challengers, double gain) {
  const double long_run = SimulatedGpu::LongRunMedian(noise), own = SimulatedGpu::SampleMedian(noise);
  int promoted = 0, same = 0, gains = 0, times = 0, cycles = 0;
  for (int i = 0; i < kPlayOffs; ++i) {
    SimulatedGpu gpu(noise, 90'000 + 7 * i + challengers);
    PairedRounds rounds(challengers + 1);
    const SimulatedGpu::Mark begin = gpu.Now();
    const auto run = [&](const std::vector<size_t>& who) -> absl::StatusOr<std::optional<PairedRounds::Cycle>> {
      std::vector<std::unique_ptr<SimulatedTimer>> sessions;
      std::vector<Timer*> timers;
      for (size_t contestant : who) {
        sessions.push_back(std::make_unique<SimulatedTimer>(gpu, contestant == 0 ? kUs : kUs / (1 + gain)));
        timers.push_back(sessions.back().get());
      }
      const auto results = PlayCycle(timers, v1::POLICY_HOT, OptionsOn(gpu), 0, 1000 * i + rounds.cycles()).value();
      PairedRounds::Cycle cycle(challengers + 1);
      for (size_t k = 0; k < who.size(); ++k) cycle[who[k]] = results[k].us;
      return cycle;
    };
    EXPECT_TRUE(RunCycles(
                    0, run, [] { return false; }, rounds)
                    .ok());
    bool any = false;
    for (size_t k = 1; k <= challengers; ++k) {
      const Gain found = rounds.Of(k, 0);
      any = any || found.answer == Answer::kFaster;
      same += found.answer == Answer::kSame ? 1 : 0;
      gains += Covers(found.low, gain, found.high) ? 1 : 0;
    }
    promoted += any ? 1 : 0;
    cycles += rounds.cycles();
    const Interval time = rounds.TimeOf(0);
    const double truth = kUs * (IsSlow(noise) ? gpu.WindowMedian(begin, own) : long_run);
    times += Covers(time.low, truth, time.high) ? 1 : 0;
  }
  const int pairs = kPlayOffs * static_cast<int>(challengers);
  return {Share(promoted, kPlayOffs), Share(same, pairs), Share(gains, pairs), Share(times, kPlayOffs),
          Share(cycles, kPlayOffs)};
}

class SimulatedTruthTest : public ::testing::TestWithParam<Noise> {};

TEST_P(SimulatedTruthTest, APlayOffPromotesWhatIsFasterAndLittleElse) {
  const PlayOffShares equal = PlayOffs(GetParam(), 1, 0), any = PlayOffs(GetParam(), 6, 0),
                      faster = PlayOffs(GetParam(), 1, 0.02);
  std::cout << absl::StrFormat(
      "| play-off | %s | %.1f %% | %.1f %% | %.1f %% | %.0f %% | %.1f %% | %.1f %% | %.1f %% | %.1f |\n",
      GetParam().name, 100 * equal.promoted, 100 * any.promoted, 100 * (1 - faster.promoted), 100 * equal.same,
      100 * equal.gain_covered, 100 * faster.gain_covered, 100 * equal.time_covered, equal.cycles);
  EXPECT_LE(equal.promoted, 0.01);
  EXPECT_LE(any.promoted, 0.01);
  EXPECT_LE(1 - faster.promoted, GetParam().session < 0.01 ? 0.05 : 0.12);
  EXPECT_GE(equal.gain_covered, 0.93);
  EXPECT_GE(any.gain_covered, 0.93);
  EXPECT_GE(faster.gain_covered, 0.93);
  EXPECT_GE(equal.time_covered, 0.93);
  EXPECT_GE(any.time_covered, 0.93);
}

TEST_P(SimulatedTruthTest, ATrialsIntervalCoversItsMedianAndAnEqualOfTheAnchorIsSeldomGivenUp) {
  const double covered = TrialCoverage(GetParam()), given_up = GivenUpEqual(GetParam());
  std::cout << absl::StrFormat("| trial | %s | %.1f %% | %.1f %% |\n", GetParam().name, 100 * given_up, 100 * covered);
  EXPECT_GE(covered, 0.93);
  EXPECT_LE(given_up, 0.03);
}

INSTANTIATE_TEST_SUITE_P(Conditions, SimulatedTruthTest, ::testing::ValuesIn(Conditions()),
                         [](const auto& noise) { return "Condition" + std::to_string(noise.index); });

}  // namespace
}  // namespace attune::measure
