// First what is likely to be good, then candidates drawn without replacement, of each family in turn. The seed decides
// the order in which they are drawn, whatever came first: a resumed job draws the same ones, and so does one that has
// other priors.
#ifndef ATTUNE_SERVER_SEARCH_RANDOM_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_RANDOM_STRATEGY_H_

#include <random>
#include <set>
#include <vector>

#include "server/search/ordered_strategy.h"

namespace attune::search {

class RandomStrategy : public OrderedStrategy {
 public:
  // Of `first`, each candidate counts once. `families` has each candidate's, or nothing (search::Likely).
  RandomStrategy(size_t candidates, std::vector<size_t> first, const std::vector<size_t>& families, uint64_t seed);

  size_t Total() const override { return candidates_; }

 private:
  struct Family {
    std::vector<size_t> order;  // the first `drawn` have been drawn
    size_t drawn = 0;
  };

  std::optional<size_t> Next() override;
  // The next in the seed's order, those of first_ included.
  std::optional<size_t> Draw();

  std::mt19937_64 random_;
  const std::vector<size_t> first_;
  std::set<size_t> asked_;  // of first_
  size_t first_asked_ = 0;
  const size_t candidates_;
  std::vector<Family> families_;
  size_t drawn_ = 0;
  size_t turn_ = 0;  // of families_
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_RANDOM_STRATEGY_H_
