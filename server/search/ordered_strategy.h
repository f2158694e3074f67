// A strategy that learns nothing: candidates in an order that is fixed beforehand, tried as their code becomes ready.
#ifndef ATTUNE_SERVER_SEARCH_ORDERED_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_ORDERED_STRATEGY_H_

#include <optional>
#include <vector>

#include "server/search/strategy.h"

namespace attune::search {

class OrderedStrategy : public Strategy {
 public:
  std::optional<size_t> Speculate() final {
    const std::optional<size_t> next = over_ ? std::nullopt : Next();
    over_ = !next.has_value();
    if (next.has_value()) ++open_;
    return next;
  }
  Choice Choose(const std::vector<size_t>& ready) final {
    if (!ready.empty()) return Choice::Try(ready.front());
    return over_ && open_ == 0 ? Choice::Done() : Choice::Wait();
  }
  void Tell(size_t candidate, const v1::Trial& trial) final { --open_; }
  bool Done() const final { return over_; }

 private:
  // The next in the order, each once; nullopt when there are no more.
  virtual std::optional<size_t> Next() = 0;

  bool over_ = false;
  size_t open_ = 0;  // speculated about and not told
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_ORDERED_STRATEGY_H_
