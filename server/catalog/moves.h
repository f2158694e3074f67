// Which parameter of a trial's variant to change next: what is feasible, and what trials of its neighbours say.
#ifndef ATTUNE_SERVER_CATALOG_MOVES_H_
#define ATTUNE_SERVER_CATALOG_MOVES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "server/space/family.h"

namespace attune::catalog {

enum class Direction { kRaise, kLower };

// A change that might help: `towards` is the value that reasoning asks for.
struct Idea {
  std::string parameter;
  Direction direction = Direction::kRaise;
  std::optional<int64_t> towards = std::nullopt;  // unset: the next value
};

// The neighbours of one trial: variants that differ from its own in one parameter. Short-lived; what it is given
// outlives it.
class Moves {
 public:
  // `family` null: its manifest is not here, or has changed since; then only what was recorded is known. `others`:
  // trials of the same problem on the same card under the same policy and dependencies, the trial itself included or
  // not.
  Moves(const v1::Trial& trial, std::shared_ptr<const space::Family> family, const v1::Device& device,
        const std::vector<v1::Trial>& others);

  // The change to the fastest neighbour among those that were tried and are faster; empty: none is. "raise KV_SPLITS
  // from 1 to 8, which took 7.2 us (trials/12)".
  std::string Proven(const std::vector<Idea>& ideas) const;
  // Or else the first idea that nobody has tried and that its family neither forbids nor advises against: "..., which
  // has not been tried".
  std::string Advice(const std::vector<Idea>& ideas) const;
  // What was tried in vain, for the finding's text; empty: nothing. "KV_SPLITS 2 and 4 instead of
  // 1: tried, and no faster".
  std::string TriedInVain(const std::vector<Idea>& ideas) const;

 private:
  struct Neighbour {
    int64_t value = 0;
    const v1::Trial* trial = nullptr;
  };
  std::optional<int64_t> ValueOf(absl::string_view parameter) const;
  bool IsFaster(const v1::Trial& other) const;
  // Tried in the idea's direction.
  std::vector<Neighbour> Tried(const Idea& idea) const;
  // The value that comes nearest to what the idea asks for, of those that the family neither forbids nor advises
  // against.
  std::optional<int64_t> Untried(const Idea& idea) const;
  bool IsFeasibleWith(absl::string_view parameter, int64_t value) const;

  const v1::Trial& trial_;
  const std::shared_ptr<const space::Family> family_;
  const v1::Device& device_;
  std::vector<std::pair<std::string, Neighbour>> neighbours_;  // by the parameter that differs
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_MOVES_H_
