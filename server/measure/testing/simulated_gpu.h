// A device whose true times are known: what a sample shows of them is disturbed as real devices disturb it. For
// simulations of the statistics (docs/benchmarks/2026-11-23-simulated-truth.md).
#ifndef ATTUNE_SERVER_MEASURE_TESTING_SIMULATED_GPU_H_
#define ATTUNE_SERVER_MEASURE_TESTING_SIMULATED_GPU_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/measure/measure.h"

namespace attune::measure {

// All as shares of a time: 0.01 is 1 %.
struct Noise {
  std::string name;
  double sample = 0.003;  // standard deviation of each sample by itself
  double tail = 0;        // mean of an exponential on top of it: skew
  double drift = 0;       // the device slows down by so much over a hundred samples
  double mode = 0;        // it changes between two clocks so far apart,
  double dwell = 2;       // after so many samples on average; 2: each sample has either by chance
  double wander = 0;      // standard deviation of an AR(1) process that all variants share,
  double rho = 0;         // from sample to sample correlated by so much
  double session = 0;     // standard deviation of what each loading of a variant adds to its times
};

// The conditions that the rules are held to.
inline std::vector<Noise> Conditions() {
  return {{.name = "quiet"},
          {.name = "noisy, sd 1 %", .sample = 0.01},
          {.name = "skewed, tail of 2 %", .tail = 0.02},
          {.name = "drift of 10 %", .drift = 0.10},
          {.name = "bimodal clocks 2 % apart", .mode = 0.02},
          {.name = "bimodal, lasting 20 samples", .mode = 0.02, .dwell = 20},
          {.name = "autocorrelated, rho 0.5", .wander = 0.01, .rho = 0.5},
          {.name = "autocorrelated, rho 0.9", .wander = 0.01, .rho = 0.9},
          {.name = "session offsets, sd 0.5 %", .session = 0.005},
          {.name = "session offsets, sd 1 %", .session = 0.01}};
}

class SimulatedGpu {
 public:
  SimulatedGpu(const Noise& noise, uint64_t seed) : noise_(noise), random_(seed) {
    wander_ = noise_.wander * normal_(random_);
    slow_ = uniform_(random_) < 0.5;
  }

  // What a sample of a run of 1 us shows.
  double Sample() {
    ++samples_;
    if (noise_.mode > 0 && uniform_(random_) < 1 / noise_.dwell) slow_ = !slow_;
    if (noise_.wander > 0) {
      wander_ = noise_.rho * wander_ + noise_.wander * std::sqrt(1 - noise_.rho * noise_.rho) * normal_(random_);
    }
    slow_samples_ += slow_ ? 1 : 0;
    wandered_ += wander_;
    const double own = 1 + noise_.sample * normal_(random_);
    const double tail = noise_.tail > 0 ? noise_.tail * -std::log(1 - uniform_(random_)) : 0;
    return own * (1 + tail) * (1 + wander_) * (slow_ ? 1 + noise_.mode : 1) *
           (1 + noise_.drift * samples_ / kDriftSamples);
  }
  double Session() { return 1 + noise_.session * normal_(random_); }

  // What the device did until now, for WindowMedian.
  struct Mark {
    int samples = 0;
    int slow = 0;
    double wandered = 0;
  };
  Mark Now() const { return {samples_, slow_samples_, wandered_}; }
  // The median of a run of 1 us in the long run, without drift, or with the device as it was on average since `mark`.
  static double LongRunMedian(const Noise& noise) {
    Noise steady = noise;
    steady.drift = 0;
    return MedianOf(steady);
  }
  static double SampleMedian(const Noise& noise) {
    return MedianOf({.name = "", .sample = noise.sample, .tail = noise.tail});
  }
  double WindowMedian(const Mark& mark, double sample_median) const {
    const double count = samples_ - mark.samples;
    return sample_median * ModeMedian((slow_samples_ - mark.slow) / count) * (1 + (wandered_ - mark.wandered) / count) *
           (1 + noise_.drift * (samples_ + mark.samples) / 2 / kDriftSamples);
  }

  // Samples move it.
  absl::Time now = absl::UnixEpoch();

 private:
  static constexpr double kDriftSamples = 100;

  // Of samples of which `slow` have the slower clock.
  double ModeMedian(double slow) const {
    const auto below = [this](double value) { return std::erfc(-value / noise_.sample / std::sqrt(2)) / 2; };
    double low = 0, high = noise_.mode;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      ((1 - slow) * below(middle) + slow * below(middle - noise_.mode) < 0.5 ? low : high) = middle;
    }
    return 1 + (low + high) / 2;
  }
  static double MedianOf(const Noise& noise) {
    SimulatedGpu gpu(noise, 1);
    std::vector<double> samples(100'001);
    for (double& sample : samples) sample = gpu.Sample();
    std::nth_element(samples.begin(), samples.begin() + 50'000, samples.end());
    return samples[50'000];
  }

  const Noise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double wander_ = 0;
  bool slow_ = false;
  int samples_ = 0;
  int slow_samples_ = 0;
  double wandered_ = 0;
};

// A variant on it; each is a session of its own.
class SimulatedTimer : public Timer {
 public:
  SimulatedTimer(SimulatedGpu& gpu, double us) : gpu_(gpu), us_(us * gpu.Session()) {}

  absl::StatusOr<Sample> Take(int runs) override {
    Sample sample;
    sample.us = us_ * gpu_.Sample();
    gpu_.now += absl::Microseconds(sample.us) * runs;
    return sample;
  }
  void Pause() override {}
  double us() const { return us_; }

 private:
  SimulatedGpu& gpu_;
  const double us_;
};

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_TESTING_SIMULATED_GPU_H_
