// A job's trials on one card: each races against an anchor of the card's own.
#ifndef ATTUNE_SERVER_TRIALS_CARD_TRIALS_H_
#define ATTUNE_SERVER_TRIALS_CARD_TRIALS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/search/candidates.h"
#include "server/trials/anchor.h"
#include "server/trials/code.h"
#include "server/trials/device_slot.h"

namespace attune::trials {

// The variants that have become a card's anchor, for the job's other cards. Thread-safe.
class AnchorOffer {
 public:
  void Post(const std::string& card, const worker::v1::Candidate& candidate);
  // What another card has posted last, the first of those after `seen`, which grows.
  std::optional<worker::v1::Candidate> NewFor(const std::string& card, uint64_t& seen) const;

 private:
  struct Posted {
    uint64_t number = 0;
    worker::v1::Candidate candidate;
  };
  mutable std::mutex mutex_;
  uint64_t posts_ = 0;
  std::map<std::string, Posted> last_;  // by card
};

// One thread. What it is given outlives it.
class CardTrials {
 public:
  // What the cards of a job share.
  struct Shared {
    const CodeSource& code;
    const search::CandidateSet& candidates;
    double trial_seconds;  // a trial may take, when that is less than what the daemon allows all; 0: no less
    bool check_all;
    AnchorOffer& offer;
  };
  CardTrials(const Shared& shared, const catalog::TuningKey& tuning_key, DeviceUse& use)
      : shared_(shared), tuning_key_(tuning_key), use_(use) {}

  const catalog::TuningKey& tuning_key() const { return tuning_key_; }
  const std::string& id() const { return tuning_key_.device.id(); }
  DeviceUse& use() { return use_; }
  const Anchor& anchor() const { return anchor_; }

  // Whose trial it is, so that no other job runs it too.
  class Claimant {
   public:
    virtual ~Claimant() = default;
    // At the job's turn on the device: whether it is to run.
    virtual bool Claim() = 0;
    // Before the job waits for its turn: nobody waits for a claim while its holder waits for the device.
    virtual void Release() = 0;
  };
  // Checks and times `trial`, whose recipe is set; LOST when the infrastructure has failed it several times. Without a
  // verdict when the claimant did not want it run. `waited`: for its code. Cancelled when stopped before its turn;
  // FailedPrecondition when the device is somebody else's.
  absl::Status Try(const search::Candidate& candidate, const Code& code, absl::Duration waited, Claimant& claimant,
                   v1::Trial& trial);

  // Of the last trial that it lost: why.
  const absl::Status& why_lost() const { return why_lost_; }
  // How many ended so, one after the other.
  int CountLost(bool lost) { return lost_in_a_row_ = lost ? lost_in_a_row_ + 1 : 0; }

 private:
  // Times the anchor when that is due.
  absl::Status TimeAnchor();
  // Takes the best of another day for the anchor, where its code is at hand.
  void AnchorAtKnown();

  const Shared& shared_;
  const catalog::TuningKey& tuning_key_;
  DeviceUse& use_;
  Anchor anchor_;
  bool anchored_ = false;     // the best of another day has been looked for
  uint64_t seen_offers_ = 0;  // of other cards' anchors
  absl::Status why_lost_;
  int lost_in_a_row_ = 0;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_CARD_TRIALS_H_
