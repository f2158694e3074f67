#include "server/measure/paired_rounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "server/measure/student.h"

namespace attune::measure {
namespace {

// A cycle with fewer rounds says nothing.
constexpr size_t kFewestOfACycle = 3;
static_assert(PairedRounds::kFewestCycles * kFewestOfACycle >= 7, "with fewer rounds chance promotes too often");

double MedianOf(std::vector<double> values) { return MedianInterval(std::move(values)).median; }

// The variance of the median of normal deviates, from their median absolute deviation.
double MedianVariance(const std::vector<double>& values, double median) {
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (double value : values) deviations.push_back(std::abs(value - median));
  const double sd = 1.4826 * MedianOf(std::move(deviations));
  return M_PI / 2 * sd * sd / static_cast<double>(values.size());
}

// Over cycles, of logarithms by round.
struct Mean {
  double value = 0;
  double between = 0;  // variance of the cycles' medians
  double within = 0;   // what it would be if only rounds varied
  size_t cycles = 0;
};

Mean MeanOf(const std::vector<std::vector<double>>& cycles) {
  Mean mean;
  std::vector<double> medians;
  for (const std::vector<double>& rounds : cycles) {
    if (rounds.size() < kFewestOfACycle) continue;
    medians.push_back(MedianOf(rounds));
    mean.within += MedianVariance(rounds, medians.back());
  }
  mean.cycles = medians.size();
  if (medians.empty()) return mean;
  const auto count = static_cast<double>(medians.size());
  mean.value = std::accumulate(medians.begin(), medians.end(), 0.0) / count;
  mean.within /= count;
  for (double median : medians) mean.between += (median - mean.value) * (median - mean.value);
  if (medians.size() > 1) mean.between /= count - 1;
  return mean;
}

// Half the width of the mean's interval. A few cycles may agree by chance better than their rounds do, or than other
// contestants' cycles, whose variance is `others`.
double HalfWidth(const Mean& mean, double others, size_t freedom, Tail tail) {
  if (mean.cycles < 2) return std::numeric_limits<double>::infinity();
  const double variance = std::max({mean.between, mean.within, others});
  return StudentQuantile(tail, freedom) * std::sqrt(variance / static_cast<double>(mean.cycles));
}

Answer AnswerOf(const Mean& mean, double bound, double interval) {
  if (mean.value - bound > std::log1p(PairedRounds::kLeastGain)) return Answer::kFaster;
  if (mean.value + bound < -std::log1p(PairedRounds::kLeastGain)) return Answer::kSlower;
  if (std::abs(mean.value) + interval < std::log1p(PairedRounds::kSame)) return Answer::kSame;
  return Answer::kUnclear;
}

}  // namespace

void PairedRounds::Add(Cycle cycle) {
  cycle.resize(contestants_);
  cycles_.push_back(std::move(cycle));
}

int PairedRounds::CyclesOf(size_t contestant) const {
  return static_cast<int>(
      std::count_if(cycles_.begin(), cycles_.end(), [&](const Cycle& cycle) { return !cycle[contestant].empty(); }));
}

std::vector<std::vector<double>> PairedRounds::Logarithms(size_t a, size_t b) const {
  std::vector<std::vector<double>> logs;
  for (const Cycle& cycle : cycles_) {
    std::vector<double>& rounds = logs.emplace_back();
    for (size_t i = 0; i < std::min(cycle[a].size(), cycle[b].size()); ++i) {
      if (cycle[a][i] > 0 && cycle[b][i] > 0) rounds.push_back(std::log(cycle[b][i] / cycle[a][i]));
    }
  }
  return logs;
}

Gain PairedRounds::Of(size_t a, size_t b) const {
  const Mean mean = MeanOf(Logarithms(a, b));
  std::vector<double> variances;
  size_t freedom = 0;
  for (size_t other = 0; other < contestants_; ++other) {
    if (other == b) continue;
    const Mean pair = MeanOf(Logarithms(other, b));
    if (pair.cycles < 2) continue;
    variances.push_back(pair.between);
    freedom += pair.cycles - 1;
  }
  // The median: one that is erratic says nothing of the others. That they share an opponent correlates them.
  const double pooled = MedianOf(std::move(variances));
  freedom = std::max(freedom / 2, mean.cycles - std::min<size_t>(mean.cycles, 1));
  const double interval = HalfWidth(mean, pooled, freedom, closed_ ? Tail::k2_5 : Tail::k0_5);
  Gain gain{std::expm1(mean.value - interval), std::expm1(mean.value), std::expm1(mean.value + interval)};
  if (mean.cycles < kFewestCycles) return gain;
  // Several challengers have several chances.
  const Tail last = contestants_ > 2 ? Tail::k2_5 : Tail::k4;
  gain.answer = AnswerOf(mean, HalfWidth(mean, pooled, freedom, closed_ ? last : Tail::k0_5), interval);
  return gain;
}

Interval PairedRounds::TimeOf(size_t contestant) const {
  std::vector<double> all;
  for (const Cycle& cycle : cycles_) {
    std::copy_if(cycle[contestant].begin(), cycle[contestant].end(), std::back_inserter(all),
                 [](double us) { return us > 0; });
  }
  if (all.empty()) return {};
  // Logarithms of parts of one time, so that equal times are exactly that time again.
  const double unit = all.front();
  std::vector<std::vector<double>> logs;
  for (const Cycle& cycle : cycles_) {
    std::vector<double>& rounds = logs.emplace_back();
    for (double us : cycle[contestant]) {
      if (us > 0) rounds.push_back(std::log(us / unit));
    }
  }
  const Mean mean = MeanOf(logs);
  if (mean.cycles < 2) return MedianInterval(std::move(all));
  const double interval = HalfWidth(mean, 0, mean.cycles - 1, Tail::k2_5);
  return {unit * std::exp(mean.value - interval), unit * std::exp(mean.value), unit * std::exp(mean.value + interval)};
}

size_t PairedRounds::Fastest(const std::vector<size_t>& among) const {
  size_t fastest = among.front();
  for (size_t contestant : among) {
    if (Of(contestant, fastest).middle > 0) fastest = contestant;
  }
  return fastest;
}

std::vector<size_t> PairedRounds::Next(std::optional<size_t> incumbent) const {
  std::vector<size_t> all(contestants_);
  std::iota(all.begin(), all.end(), size_t{0});
  if (cycles() < kFewestCycles || all.empty()) return all;
  if (cycles() >= kMostCycles) return {};
  const size_t other = incumbent.value_or(Fastest(all));
  std::vector<size_t> next;
  for (size_t contestant : all) {
    if (contestant != other && Of(contestant, other).answer == Answer::kUnclear) next.push_back(contestant);
  }
  if (!next.empty()) next.push_back(other);
  return next;
}

}  // namespace attune::measure
