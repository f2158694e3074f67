// Several variants interleaved, so that whatever drifts drifts for all of them alike.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/measure/measure.h"
#include "server/measure/sampler.h"

namespace attune::measure {
namespace {

constexpr int kRounds = 9;
constexpr size_t kFewestRounds = 3;
// Of max_time, for each contestant: there are three cycles at least.
constexpr double kTimeShare = 1.0 / 3;

}  // namespace

absl::StatusOr<std::vector<RoundTimes>> PlayCycle(const std::vector<Timer*>& timers, v1::Policy policy,
                                                  const Options& options, int rounds, uint64_t order_seed) {
  std::vector<std::unique_ptr<Sampler>> samplers;
  samplers.reserve(timers.size());
  for (Timer* timer : timers) {
    samplers.push_back(std::make_unique<Sampler>(*timer, policy, options));
    if (absl::Status status = samplers.back()->WarmUp(); !status.ok()) return status;
  }
  std::vector<size_t> order(timers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(order_seed);
  const absl::Time until = options.now() + static_cast<double>(timers.size()) * kTimeShare * options.max_time;
  const size_t wanted = rounds > 0 ? static_cast<size_t>(rounds) : kRounds;
  for (size_t round = 0; round < wanted && !order.empty(); ++round) {
    if (round >= kFewestRounds && options.now() >= until) break;
    // A fixed order would have each but one always follow the same neighbour's heat and cache contents.
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      if (absl::Status status = samplers[i]->TakeSample(); !status.ok()) return status;
    }
  }
  std::vector<RoundTimes> results;
  results.reserve(timers.size());
  for (const auto& sampler : samplers) results.push_back({sampler->samples().ToTiming(), sampler->samples().ByOrder()});
  return results;
}

}  // namespace attune::measure
