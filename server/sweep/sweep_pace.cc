#include "server/sweep/sweep_pace.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace attune::sweep {
namespace {

constexpr double kWidest = 5;  // of a range whose geometric mean is told: off by at most 2.3 where the range is right

// In seconds.
struct Range {
  double low = 0;
  double high = 0;
};

// Seconds by work.
using Times = std::map<double, double>;

Times TimesOf(const SweepPace& pace) {
  Times times;
  for (const auto& [work, done] : pace.done) {
    times[work] = absl::ToDoubleSeconds(done.spent) / static_cast<double>(done.problems);
  }
  for (const SweepPace::AtHand& one : pace.at_hand) {
    if (one.eta.has_value()) times.try_emplace(one.work, absl::ToDoubleSeconds(one.since + *one.eta));
  }
  return times;
}

// Between two that were done, on a power law through both. Beyond them, between the time of the nearest, as where all
// of it is overhead, and that in proportion to the work, as where nothing is.
Range Predict(double work, const Times& times) {
  const auto above = times.lower_bound(work);
  if (above == times.end()) {
    const auto& [most, longest] = *times.rbegin();
    return {longest, longest * work / most};
  }
  const auto& [more, longer] = *above;
  if (more == work) return {longer, longer};
  if (above == times.begin()) return {longer * work / more, longer};
  const auto& [less, shorter] = *std::prev(above);
  if (shorter <= 0 || longer <= 0) return {std::min(shorter, longer), std::max(shorter, longer)};
  const double share = std::log(work / less) / std::log(more / less);
  const double between = shorter * std::pow(longer / shorter, share);
  return {between, between};
}

}  // namespace

std::optional<absl::Duration> SweepPace::TimeLeft() const {
  if (left.empty() && at_hand.empty()) return absl::ZeroDuration();
  const Times times = TimesOf(*this);
  if (times.empty()) return std::nullopt;
  Range rest;
  double longest = 0;  // of one problem: several cards do not share it
  int64_t problems = 0;
  const auto add = [&](const Range& each, int64_t count) {
    rest.low += each.low * static_cast<double>(count);
    rest.high += each.high * static_cast<double>(count);
    longest = std::max(longest, each.low);
    problems += count;
  };
  for (const auto& [work, count] : left) add(Predict(work, times), count);
  for (const AtHand& one : at_hand) {
    const double since = absl::ToDoubleSeconds(one.since);
    const double own = one.eta.has_value() ? absl::ToDoubleSeconds(*one.eta) : 0;
    const Range whole = Predict(one.work, times);
    if (since >= whole.high && !one.eta.has_value()) return std::nullopt;  // longer than was foreseen
    add({std::max(whole.low - since, own), std::max(whole.high - since, own)}, 1);
  }
  if (rest.high > kWidest * rest.low) return std::nullopt;
  const double together = std::sqrt(rest.low * rest.high) / static_cast<double>(std::min(cards, problems));
  return absl::Seconds(std::max(together, longest));
}

}  // namespace attune::sweep
