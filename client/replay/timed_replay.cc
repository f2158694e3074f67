#include "client/replay/timed_replay.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/replay/replay.h"
#include "server/base/clock.h"

namespace attune::replay {
namespace {

// Compilers that take codes in the order in which they were asked for. What was dropped is compiled all the same.
class Compilers {
 public:
  Compilers(const RecordedSpace& space, const Host& host) : space_(space) {
    for (int i = 0; i < host.compilers; ++i) free_.push(0);
  }

  // When a candidate's code is there, asked for at `now`.
  double ReadyAt(size_t candidate, double now) {
    if (free_.empty()) return now;
    const auto [it, fresh] = ready_.try_emplace(space_.codes[candidate], 0);
    if (fresh) {
      const double begin = std::max(now, free_.top());
      free_.pop();
      it->second = begin + space_.compile_ms[static_cast<size_t>(it->first)];
      free_.push(it->second);
    }
    return it->second;
  }
  size_t codes() const { return ready_.size(); }

 private:
  const RecordedSpace& space_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;  // when each is
  std::map<int, double> ready_;                                            // codes
};

// Candidates asked for and not yet taken, by when their codes are there.
class Asked {
 public:
  explicit Asked(const RecordedSpace& space) : space_(space) {}

  void Add(size_t candidate, double ready_at) {
    candidates_.emplace(ready_at, candidate);
    ++codes_[space_.codes[candidate]];
  }
  void Remove(size_t candidate) {
    std::erase_if(candidates_, [&](const auto& one) { return one.second == candidate; });
    const auto code = codes_.find(space_.codes[candidate]);
    if (--code->second == 0) codes_.erase(code);
  }
  int codes() const { return static_cast<int>(codes_.size()); }
  std::vector<size_t> ReadyBy(double now) const {
    std::vector<size_t> ready;
    for (const auto& [at, candidate] : candidates_) {
      if (at <= now) ready.push_back(candidate);
    }
    return ready;
  }
  // When the next after `now` is ready.
  std::optional<double> NextAfter(double now) const {
    const auto next =
        std::find_if(candidates_.begin(), candidates_.end(), [&](const auto& one) { return one.first > now; });
    return next == candidates_.end() ? std::nullopt : std::optional(next->first);
  }

 private:
  const RecordedSpace& space_;
  std::multimap<double, size_t> candidates_;
  std::map<int, int> codes_;
};

}  // namespace

TimedRun ReplayTimed(search::Strategy& strategy, const RecordedSpace& space, const Host& host) {
  TimedRun run;
  Compilers compilers(space, host);
  Asked asked(space);
  const int window = host.compilers > 0 ? 4 * host.compilers : 64;
  double now = 0;  // ms
  while (true) {
    while (const search::Strategy::Thought thought = strategy.Think()) {
      thought()();
      now += host.think_ms;
    }
    for (size_t dropped : strategy.Drop()) asked.Remove(dropped);
    while (asked.codes() < window) {
      const std::optional<size_t> next = strategy.Speculate();
      if (!next.has_value()) break;
      asked.Add(*next, compilers.ReadyAt(*next, now));
    }
    const search::Choice choice = strategy.Choose(asked.ReadyBy(now));
    if (choice.what == search::Choice::What::kDone) break;
    if (choice.what == search::Choice::What::kWait) {
      // It may think now that it knows that it waits.
      if (const search::Strategy::Thought thought = strategy.Think()) {
        thought()();
        now += host.think_ms;
        continue;
      }
      const std::optional<double> next = asked.NextAfter(now);
      if (!next.has_value()) break;  // nothing will ever change
      now = *next;
      continue;
    }
    asked.Remove(choice.candidate);
    now += host.trial_ms;
    run.tried.push_back(choice.candidate);
    run.seconds = now / 1000;
    strategy.Tell(choice.candidate, TrialOf(space.outcomes[choice.candidate]));
  }
  run.codes = compilers.codes();
  return run;
}

absl::StatusOr<std::string> TimeSearches(const std::vector<RecordedSpace>& spaces, const TimedOptions& options) {
  std::string text = absl::StrFormat(
      "| problem | variants | trials | codes compiled | s | longest s | within %.3g %% "
      "|\n|---|---|---|---|---|---|---|\n",
      options.within * 100);
  const auto median = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  for (const RecordedSpace& space : spaces) {
    if (options.host.compilers > 0 && space.compile_ms.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(space.name,
                                                     ": no compile time was recorded; leave it out, or "
                                                     "give --compilers=0"));
    }
    std::vector<double> trials, codes, seconds;
    int near = 0;
    for (int seed = 1; seed <= options.seeds; ++seed) {
      attune::v1::Strategy description;
      description.set_kind(attune::v1::Strategy::KIND_GUIDED);
      description.set_effort(attune::v1::Strategy::EFFORT_STANDARD);
      description.set_seed(static_cast<uint64_t>(seed));
      const auto strategy = search::MakeStrategy(description, space.field, 1, SteadyNow);
      const TimedRun run = ReplayTimed(*strategy, space, options.host);
      trials.push_back(static_cast<double>(run.tried.size()));
      codes.push_back(static_cast<double>(run.codes));
      seconds.push_back(run.seconds);
      near += TrialsToWithin(options.within, run.tried, space).has_value() ? 1 : 0;
    }
    absl::StrAppendFormat(&text, "| %s | %d | %.0f | %.0f | %.1f | %.1f | %d of %d |\n", space.name,
                          space.outcomes.size(), median(trials), median(codes), median(seconds),
                          *std::max_element(seconds.begin(), seconds.end()), near, options.seeds);
  }
  return text;
}

}  // namespace attune::replay
