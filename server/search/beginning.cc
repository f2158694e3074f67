#include "server/search/beginning.h"

#include <algorithm>
#include <limits>

namespace attune::search {
namespace {

constexpr size_t kMostTimedElsewhere = 3;  // timed on other cards
constexpr size_t kMostRanked = 3;          // by near problems' times,
constexpr size_t kMostRankedByFar = 1;     // and by those of others
constexpr size_t kCold = 8;                // trials to begin with where nothing is likely
constexpr size_t kWarm = 5;                // and where something is
constexpr size_t kDrawn = 24;              // of which the one that differs most is taken

// Candidates chosen so far.
class Beginning {
 public:
  Beginning(const std::vector<bool>& open, size_t most) : open_(open), most_(most) {}

  bool IsFull() const { return chosen_.size() >= most_; }
  bool MayTake(size_t candidate) const {
    return open_[candidate] && std::find(chosen_.begin(), chosen_.end(), candidate) == chosen_.end();
  }
  void Take(size_t candidate) {
    if (!IsFull() && MayTake(candidate)) chosen_.push_back(candidate);
  }
  const std::vector<size_t>& chosen() const { return chosen_; }

 private:
  const std::vector<bool>& open_;
  const size_t most_;
  std::vector<size_t> chosen_;
};

size_t LeastDistance(const Exchange& exchange, size_t candidate, const std::vector<size_t>& others) {
  size_t least = std::numeric_limits<size_t>::max();
  for (size_t other : others) least = std::min(least, exchange.Distance(candidate, other));
  return least;
}

}  // namespace

size_t TrialsToBeginWith(const Field& field, const SpaceModel& model) {
  const size_t likely = (field.likely.incumbent.has_value() ? 1 : 0) +
                        std::min(field.likely.priors.size(), kMostTimedElsewhere) + field.likely.guesses.size();
  if (likely == 0 && !model.has_prior()) return kCold;
  size_t families = 0;
  for (const Point& point : field.points) families = std::max(families, point.family + 1);
  return std::clamp(likely + families, kWarm, kCold);
}

std::vector<size_t> BeginWith(const Field& field, const Exchange& exchange, const SpaceModel& model,
                              const std::vector<bool>& open, size_t most, RandomNumbers& random) {
  Beginning beginning(open, most);
  const Likely& likely = field.likely;
  if (likely.incumbent.has_value()) beginning.Take(*likely.incumbent);
  for (size_t i = 0; i < std::min(likely.priors.size(), kMostTimedElsewhere); ++i) beginning.Take(likely.priors[i]);
  for (size_t guess : likely.guesses) beginning.Take(guess);

  std::vector<std::vector<size_t>> families;
  for (size_t candidate = 0; candidate < field.candidates; ++candidate) {
    const size_t family = exchange.FamilyOf(candidate);
    if (family >= families.size()) families.resize(family + 1);
    if (beginning.MayTake(candidate)) families[family].push_back(candidate);
  }
  if (model.has_prior()) {
    std::vector<size_t> ranked;
    for (const std::vector<size_t>& family : families) ranked.insert(ranked.end(), family.begin(), family.end());
    std::stable_sort(ranked.begin(), ranked.end(), [&](size_t a, size_t b) { return model.Prior(a) < model.Prior(b); });
    const size_t ranked_at_most = model.is_prior_near() ? kMostRanked : kMostRankedByFar;
    for (size_t i = 0; i < std::min(ranked.size(), ranked_at_most); ++i) beginning.Take(ranked[i]);
  }
  for (bool more = true; more && !beginning.IsFull();) {
    more = false;
    for (const std::vector<size_t>& family : families) {
      if (family.empty()) continue;
      std::optional<size_t> farthest;
      size_t distance = 0;
      for (size_t draw = 0; draw < kDrawn; ++draw) {
        const size_t candidate = family[random.Below(family.size())];
        if (!beginning.MayTake(candidate)) continue;
        const size_t least = LeastDistance(exchange, candidate, beginning.chosen());
        if (farthest.has_value() && least <= distance) continue;
        farthest = candidate;
        distance = least;
      }
      if (!farthest.has_value()) continue;
      beginning.Take(*farthest);
      more = true;
    }
  }
  return beginning.chosen();
}

}  // namespace attune::search
