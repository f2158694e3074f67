// Which problem of a sweep goes to which card next.
#ifndef ATTUNE_SERVER_SWEEP_SHARES_H_
#define ATTUNE_SERVER_SWEEP_SHARES_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/sweep/card_class.h"

namespace attune::sweep {

// Problems wait for one card, or for any of a class. Each card has at most one at hand, of a fleet's class as many as
// SetFleet says. Not thread-safe.
class Shares {
 public:
  explicit Shares(const std::vector<CardClass>& classes);

  // The problem waits for `card`, or for any of its class when that is empty.
  void Add(size_t problem, size_t card_class, const std::string& card);
  // The card takes no more. In a fleet's class, where any card may take what is for any, nothing is for any from then
  // on.
  void Retire(const std::string& card);
  // The class's cards are a fleet's: these, by their names among all hosts, as of now, each with at most `each` at
  // hand, so that it has its next one without having to ask for it. What waited for one that is gone waits for any.
  void SetFleet(size_t card_class, const std::vector<std::string>& cards, size_t each);

  // A problem at hand: on a card, or for the first of its class that is free while `card` is empty.
  struct AtHand {
    size_t card_class = 0;
    std::string card;
  };
  struct Next {
    size_t problem = 0;
    size_t card_class = 0;
    std::vector<std::string> cards;  // that it is for; none: any card of the fleet's
  };
  // What a free card could work on; nullopt when nothing waits, or no card that it waits for is free.
  std::optional<Next> Take(const std::vector<AtHand>& at_hand);
  // One that waits for retired cards alone.
  std::optional<size_t> TakeHopeless();

 private:
  struct OfClass {
    std::vector<std::string> cards;  // those not retired
    std::set<std::string> retired;
    bool fleet = false;
    size_t each = 1;  // at hand a card
    std::deque<size_t> shared;
    std::map<std::string, std::deque<size_t>> by_card;
  };
  // Whether no card will take what is for any.
  static bool IsHopeless(const OfClass& of) { return of.cards.empty() || (of.fleet && !of.retired.empty()); }
  std::optional<Next> TakeOf(size_t card_class, const std::vector<AtHand>& at_hand);

  std::vector<OfClass> classes_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SHARES_H_
