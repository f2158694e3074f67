#include "client/replay/replay.h"

#include <algorithm>

namespace attune::replay {
namespace {

constexpr size_t kAhead = 64;  // codes

}  // namespace

attune::v1::Trial TrialOf(const search::Outcome& outcome) {
  attune::v1::Trial trial;
  trial.set_verdict(outcome.ok ? attune::v1::VERDICT_OK : attune::v1::VERDICT_WRONG_RESULT);
  if (outcome.ok) trial.mutable_timing()->set_median_us(outcome.us);
  return trial;
}

std::vector<size_t> Replay(search::Strategy& strategy, const RecordedSpace& space, size_t most_trials,
                           double enough_us) {
  std::vector<size_t> tried;
  std::vector<size_t> ready;
  while (tried.size() < most_trials) {
    while (const search::Strategy::Thought thought = strategy.Think()) thought()();
    for (size_t dropped : strategy.Drop()) std::erase(ready, dropped);
    bool more = false;
    while (ready.size() < kAhead) {
      const std::optional<size_t> next = strategy.Speculate();
      if (!next.has_value()) break;
      ready.push_back(*next);
      more = true;
    }
    const search::Choice choice = strategy.Choose(ready);
    if (choice.what == search::Choice::What::kDone) break;
    if (choice.what == search::Choice::What::kWait) {
      if (!more) break;  // nothing will ever change
      continue;
    }
    std::erase(ready, choice.candidate);
    tried.push_back(choice.candidate);
    const search::Outcome& outcome = space.outcomes[choice.candidate];
    strategy.Tell(choice.candidate, TrialOf(outcome));
    if (outcome.ok && outcome.us <= enough_us) break;
  }
  return tried;
}

std::optional<size_t> TrialsToWithin(double share, const std::vector<size_t>& tried, const RecordedSpace& space) {
  for (size_t i = 0; i < tried.size(); ++i) {
    const search::Outcome& outcome = space.outcomes[tried[i]];
    if (outcome.ok && outcome.us <= space.best_us * (1 + share)) return i + 1;
  }
  return std::nullopt;
}

}  // namespace attune::replay
