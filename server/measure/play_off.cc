// Several variants interleaved, so that whatever drifts drifts for all of them alike.
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/measure/measure.h"
#include "server/measure/sampler.h"

namespace attune::measure {
namespace {

constexpr int kFewestRounds = 3;

bool AllFinished(const std::vector<std::unique_ptr<Sampler>>& samplers) {
  for (const auto& sampler : samplers) {
    if (!sampler->finished()) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<v1::Timing>> PlayOff(const std::vector<Timer*>& timers, v1::Policy policy,
                                                const Options& options) {
  std::vector<std::unique_ptr<Sampler>> samplers;
  samplers.reserve(timers.size());
  for (Timer* timer : timers) {
    samplers.push_back(std::make_unique<Sampler>(*timer, policy, options));
    if (absl::Status status = samplers.back()->WarmUp(); !status.ok()) return status;
  }
  const size_t count = samplers.size();
  const absl::Time until = options.now() + static_cast<double>(count) * options.max_time;
  for (size_t round = 0; !AllFinished(samplers); ++round) {
    if (round >= kFewestRounds && options.now() >= until) break;
    // The one that is settled goes on as long as any other is not: all see the same conditions.
    for (size_t i = 0; i < count; ++i) {
      if (absl::Status status = samplers[(round + i) % count]->TakeSample(); !status.ok()) return status;
    }
  }
  std::vector<v1::Timing> timings;
  timings.reserve(count);
  for (const auto& sampler : samplers) timings.push_back(sampler->samples().ToTiming());
  return timings;
}

}  // namespace attune::measure
