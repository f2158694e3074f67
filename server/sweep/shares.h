// Which problem of a sweep goes to which card next.
#ifndef ATTUNE_SERVER_SWEEP_SHARES_H_
#define ATTUNE_SERVER_SWEEP_SHARES_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/sweep/card_class.h"

namespace attune::sweep {

// Problems wait for one card, or for any of a class. Each card has at most one at hand. Not thread-safe.
class Shares {
 public:
  explicit Shares(const std::vector<CardClass>& classes);

  // The problem waits for `card`, or for any of its class when that is empty.
  void Add(size_t problem, size_t card_class, const std::string& card);
  // The card takes no more.
  void Retire(const std::string& card);

  // A problem at hand: on a card, or for the first of its class that is free while `card` is empty.
  struct AtHand {
    size_t card_class = 0;
    std::string card;
  };
  struct Next {
    size_t problem = 0;
    size_t card_class = 0;
    std::vector<std::string> cards;  // that it is for
  };
  // What a free card could work on; nullopt when nothing waits, or no card that it waits for is free.
  std::optional<Next> Take(const std::vector<AtHand>& at_hand);
  // One that waits for retired cards alone.
  std::optional<size_t> TakeHopeless();

 private:
  struct OfClass {
    std::vector<std::string> cards;  // those not retired
    std::deque<size_t> shared;
    std::map<std::string, std::deque<size_t>> by_card;
  };
  std::optional<Next> TakeOf(size_t card_class, const std::vector<AtHand>& at_hand);

  std::vector<OfClass> classes_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SHARES_H_
