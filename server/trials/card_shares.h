// What each of a job's cards has done and cost, and the trials that one had in hand when it was lost or taken away.
#ifndef ATTUNE_SERVER_TRIALS_CARD_SHARES_H_
#define ATTUNE_SERVER_TRIALS_CARD_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/trials/compile_ahead.h"

namespace attune::trials {

// Thread-safe. Cards are numbered, the job's first card is 0.
class CardShares {
 public:
  struct Share {
    std::string id;
    int64_t trials = 0;  // that it ran, or found resolved
    bool at_work = false;
    absl::Status lost;  // why it is out
    absl::Duration busy;
    v1::OperationCost cost;
  };
  explicit CardShares(const std::vector<std::string>& ids);

  bool several() const { return ids_ > 1; }
  std::vector<Share> all() const;
  Share of(size_t card) const;

  // It has its turn from now on.
  void Begin(size_t card);
  void End(size_t card);
  void Lose(size_t card, const absl::Status& why);
  void CountTrial(size_t card);
  void SetCost(size_t card, absl::Duration busy, const v1::OperationCost& cost);

  // A trial that it had in hand when another job took the card, or the card was lost with no trial to blame.
  void HandBack(CompileAhead::Ready ready);
  // One that was lost on it, to be tried once more: by another card, or where no other is at work by itself. False
  // where it was lost before, or the job has one card: then it is LOST.
  bool HandBackLost(size_t card, const CompileAhead::Ready& ready);
  // Whether something was handed back that the card may take: what it lost itself only while no other is at work.
  bool HasFor(size_t card) const;
  std::optional<CompileAhead::Ready> TakeFor(size_t card);
  bool HasAny() const;  // whoever may take it

  // Of all, or all but the first.
  v1::OperationCost CostFrom(size_t first) const;
  absl::Duration busy() const;
  int at_work() const;
  void Tell(v1::OperationProgress& progress) const;

 private:
  struct HandedBack {
    CompileAhead::Ready ready;
    std::optional<size_t> lost_by;
  };
  std::optional<size_t> FindLocked(size_t card) const;
  bool OthersAtWorkLocked(size_t card) const;

  const size_t ids_;
  mutable std::mutex mutex_;
  std::vector<Share> shares_;
  std::vector<HandedBack> handed_back_;
  std::set<size_t> lost_once_;  // candidates
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_CARD_SHARES_H_
