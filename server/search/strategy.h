// Which variants are tried, and in what order: the seam between a search and what compiles, checks and times for it.
//
// A strategy sees candidates as numbers 0..n-1 and learns their trials. What is compiled ahead (Speculate) is apart
// from what is tried next (Choose), so that a strategy that learns may change its mind about codes that are under way.
// Calls are made one at a time; the work of Think alone runs beside them.
#ifndef ATTUNE_SERVER_SEARCH_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/base/clock.h"
#include "server/search/field.h"

namespace attune::search {

// What to try next. Waiting is not the end: more becomes ready, or is told.
struct Choice {
  enum class What { kTry, kWait, kDone };
  What what = What::kWait;
  size_t candidate = 0;  // with kTry

  static Choice Try(size_t candidate) { return {What::kTry, candidate}; }
  static Choice Wait() { return {What::kWait}; }
  static Choice Done() { return {What::kDone}; }
};

class Strategy {
 public:
  // Computes without the lock, and gives what is to be run under it.
  using Thought = std::function<std::function<void()>()>;

  virtual ~Strategy() = default;

  // A candidate whose code is worth having soon, most wanted first, none given twice unless it was dropped; nullopt:
  // none for now. What is known of it already may be told at once; it is then not chosen any more.
  virtual std::optional<size_t> Speculate() = 0;
  // Those of Speculate, not yet chosen or told, that nobody needs to wait for any more. Choose gives none of them.
  virtual std::vector<size_t> Drop() { return {}; }
  // One of `ready`, candidates of Speculate whose code is there, in the order in which it came. It may be called with
  // none, and whenever something was told.
  virtual Choice Choose(const std::vector<size_t>& ready) = 0;
  // How a candidate that was speculated about has ended, chosen or not.
  virtual void Tell(size_t candidate, const v1::Trial& trial) = 0;
  // What must be computed before the strategy can go on, such as fitting a model; null when there is nothing.
  virtual Thought Think() { return nullptr; }
  // Speculate gives nothing any more, whatever is told.
  virtual bool Done() const = 0;
  // How many will be tried at most, from the start.
  virtual size_t Total() const = 0;
  // Those whose trials it has begun with (Field::known): they are tried no more, and its budget does not count them.
  virtual std::vector<size_t> Known() const { return {}; }
  // What is left of its budget of time, which begins with the first choice.
  virtual absl::Duration TimeLeft() const { return absl::InfiniteDuration(); }
  // What it is at, for people; empty where there is nothing to say.
  virtual std::string Stage() const { return ""; }
  // How good the best is that was told, as far as the strategy can say.
  virtual std::optional<v1::SearchClaim> Claim() const { return std::nullopt; }
};

// Whether strategies of this kind need a field with points and known trials (learning_field.h).
bool Learns(v1::Strategy::Kind kind);

// How many trials a strategy that learns makes of so many candidates at most; 0: no limit.
int64_t TrialLimit(const v1::Strategy& description, size_t candidates);

// How sure of its best such a strategy is when it ends before its limit; 0: it does not.
double EnoughOf(v1::Strategy::Effort effort);

// The strategy that a request describes, its budget included. `default_seed` stands in for a seed of 0: a value that is
// the same when the job is resumed.
std::unique_ptr<Strategy> MakeStrategy(const v1::Strategy& description, Field field, uint64_t default_seed,
                                       Clock clock);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_STRATEGY_H_
