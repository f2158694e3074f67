// Strategies against each other on the same spaces: how many trials each needs until one is within some share of the
// best.
#ifndef ATTUNE_CLIENT_REPLAY_LEAGUE_H_
#define ATTUNE_CLIENT_REPLAY_LEAGUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/recorded_space.h"
#include "server/search/strategy.h"

namespace attune::replay {

// What a league's strategies are called: those of `attune tune --strategy`.
std::vector<std::string> StrategyNames();
// Without a limit of its own. InvalidArgument for any other name.
absl::StatusOr<std::unique_ptr<search::Strategy>> StrategyNamed(const std::string& name, search::Field field,
                                                                uint64_t seed);

struct LeagueOptions {
  std::vector<std::string> strategies;
  int seeds = 20;
  double limit = 0.5;                               // share of a space that is tried at most
  std::vector<double> shares = {0.01, 0.02, 0.05};  // within which of the best
  bool whole = false;                               // a run goes on when it is as near as the closest share
};

// A trial that was faster than all before it.
struct Improvement {
  size_t trial = 0;  // from 1
  double us = 0;
};

// Of one strategy on one space.
struct Standing {
  std::string space;
  std::string strategy;
  size_t candidates = 0;
  // Of each share, trials of each seed, that of seed 1 first; nullopt where the limit was not enough.
  std::vector<std::vector<std::optional<size_t>>> trials;
  std::vector<std::vector<Improvement>> improvements;  // of each seed
};

// `spaces[i]` with what is in its field: likely ones and neighbours are the caller's to give or take away.
absl::StatusOr<std::vector<Standing>> PlayLeague(const std::vector<RecordedSpace>& spaces,
                                                 const LeagueOptions& options);

// A quantile of a standing's trials; nullopt where it lies beyond the limit.
std::optional<size_t> Quantile(std::vector<std::optional<size_t>> trials, double quantile);

// Median and 95th percentile of each, and the share of runs within a twentieth of the space.
std::string Markdown(const std::vector<Standing>& standings, const LeagueOptions& options);
// A line for each space, strategy, share and seed.
std::string Csv(const std::vector<Standing>& standings, const LeagueOptions& options);
// A line for each space, strategy, seed and improvement: how the best so far fell.
std::string CurvesCsv(const std::vector<Standing>& standings);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_LEAGUE_H_
