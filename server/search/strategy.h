// Which variants are tried, and in what order: the ask/tell seam of the tuning loop.
//
// A strategy sees candidates as indices 0..n-1 and learns their trials. Compiling runs ahead of timing, so several
// candidates are asked for before the first is told. Not thread-safe.
#ifndef ATTUNE_SERVER_SEARCH_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/base/clock.h"

namespace attune::search {

class Strategy {
 public:
  virtual ~Strategy() = default;
  // The candidate to try next, each at most once; nullopt when there are no more.
  virtual std::optional<size_t> Ask() = 0;
  // How a candidate that was asked for has ended.
  virtual void Tell(size_t candidate, const v1::Trial& trial) = 0;
  // How many it will ask for at most, from the start.
  virtual size_t Total() const = 0;
};

// Candidates that are likely to be good, best first.
struct Likely {
  // Served now: every strategy begins with it, and its budget counts it. It takes part in the play-off, and a good
  // leader makes racing short.
  std::optional<size_t> incumbent = {};
  std::vector<size_t> priors;   // timed on other cards: every strategy goes on with them
  std::vector<size_t> guesses;  // never timed: RANDOM goes on with them

  // The number of each candidate's family, 0..n-1: RANDOM then draws from the families in turn, so that none is lost
  // among another's thousands. Empty: all are of one.
  std::vector<size_t> families = {};
};

// The strategy that a request describes, its budget included. `default_seed` stands in for a seed of 0: a value that is
// the same when the job is resumed.
std::unique_ptr<Strategy> MakeStrategy(const v1::Strategy& description, size_t candidates, const Likely& likely,
                                       uint64_t default_seed, Clock clock);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_STRATEGY_H_
