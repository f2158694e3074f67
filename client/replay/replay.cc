#include "client/replay/replay.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

namespace attune::replay {
namespace {

// Of codes asked for and not yet taken, as many for each compiler as the daemon has (server/daemon/tuning.cc).
constexpr int kAheadOfCompiler = 4;
constexpr int kAheadWithoutCompilers = 64;

attune::v1::Trial TrialOf(const search::Outcome& outcome, double compile_ms) {
  attune::v1::Trial trial;
  trial.set_compile_ms(compile_ms);
  trial.set_verdict(outcome.ok ? attune::v1::VERDICT_OK : attune::v1::VERDICT_WRONG_RESULT);
  if (outcome.ok) trial.mutable_timing()->set_median_us(outcome.us);
  return trial;
}

// Compilers that take codes in the order in which they were asked for. What was dropped is compiled all the same.
class Compilers {
 public:
  Compilers(const RecordedSpace& space, const Host& host) : space_(space) {
    for (int i = 0; i < host.compilers; ++i) free_.push(0);
  }

  // What a trial's code took that was compiled for it: the first of all that share it.
  double Spent(size_t candidate) {
    const size_t code = space_.field.codes[candidate];
    return ready_.contains(code) && told_.insert(code).second ? space_.compile_ms[code] : 0;
  }
  // When a candidate's code is there, asked for at `now`.
  double ReadyAt(size_t candidate, double now) {
    if (free_.empty()) return now;  // there are none: all code is there
    const auto [it, fresh] = ready_.try_emplace(space_.field.codes[candidate], 0);
    if (fresh) {
      const double begin = std::max(now, free_.top());
      free_.pop();
      it->second = begin + space_.compile_ms[it->first];
      free_.push(it->second);
    }
    return it->second;
  }
  size_t codes() const { return ready_.size(); }

 private:
  const RecordedSpace& space_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;  // when each is
  std::map<size_t, double> ready_;                                         // codes
  std::set<size_t> told_;                                                  // codes that a trial had compiled
};

// Candidates asked for and not yet taken, by when their codes are there.
class Asked {
 public:
  explicit Asked(const RecordedSpace& space) : space_(space) {}

  void Add(size_t candidate, double ready_at) {
    candidates_.emplace(ready_at, candidate);
    ++codes_[space_.field.codes[candidate]];
  }
  void Remove(size_t candidate) {
    std::erase_if(candidates_, [&](const auto& one) { return one.second == candidate; });
    const auto code = codes_.find(space_.field.codes[candidate]);
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
  std::map<size_t, int> codes_;
};

// False when there is nothing to think of.
bool ThinkThrough(search::Strategy& strategy, double think_ms, double& now) {
  bool thought = false;
  while (const search::Strategy::Thought next = strategy.Think()) {
    next()();
    now += think_ms;
    thought = true;
  }
  return thought;
}

}  // namespace

search::Field FieldOn(const Host& host, const RecordedSpace& space) {
  search::Field field = space.field;
  field.compilers = static_cast<size_t>(host.compilers);
  return field;
}

ReplayRun ReplayOn(const Host& host, search::Strategy& strategy, const RecordedSpace& space, const Enough& enough) {
  ReplayRun run;
  Compilers compilers(space, host);
  Asked asked(space);
  const int window = host.compilers > 0 ? kAheadOfCompiler * host.compilers : kAheadWithoutCompilers;
  double now = 0;  // ms
  while (run.tried.size() < enough.trials) {
    ThinkThrough(strategy, host.think_ms, now);
    for (size_t dropped : strategy.Drop()) asked.Remove(dropped);
    while (asked.codes() < window) {
      const std::optional<size_t> next = strategy.Speculate();
      if (!next.has_value()) break;
      asked.Add(*next, compilers.ReadyAt(*next, now));
    }
    const search::Choice choice = strategy.Choose(asked.ReadyBy(now));
    if (choice.what == search::Choice::What::kDone) break;
    if (choice.what == search::Choice::What::kWait) {
      // Who is heard to wait may plan more, as in CompileAhead::Take.
      if (ThinkThrough(strategy, host.think_ms, now)) continue;
      const std::optional<double> next = asked.NextAfter(now);
      if (!next.has_value()) break;  // nothing will ever change
      now = *next;
      continue;
    }
    asked.Remove(choice.candidate);
    now += host.trial_ms;
    run.tried.push_back(choice.candidate);
    run.seconds = now / 1000;
    const search::Outcome& outcome = space.outcomes[choice.candidate];
    strategy.Tell(choice.candidate, TrialOf(outcome, compilers.Spent(choice.candidate)));
    if (outcome.ok && outcome.us <= enough.us) break;
  }
  run.codes = compilers.codes();
  return run;
}

std::vector<size_t> Replay(search::Strategy& strategy, const RecordedSpace& space, size_t most_trials,
                           double enough_us) {
  return ReplayOn({}, strategy, space, {most_trials, enough_us}).tried;
}

std::optional<size_t> TrialsToWithin(double share, const std::vector<size_t>& tried, const RecordedSpace& space) {
  for (size_t i = 0; i < tried.size(); ++i) {
    const search::Outcome& outcome = space.outcomes[tried[i]];
    if (outcome.ok && outcome.us <= space.best_us * (1 + share)) return i + 1;
  }
  return std::nullopt;
}

}  // namespace attune::replay
