// The trials of a job: asked for by its strategy, compiled ahead, checked and timed on the device, recorded.
//
// Three threads: one lets the strategy think, asks it and compiles ahead (CompileAhead), the caller's lets it choose
// and feeds the device, one records (Recorder). A trial counts as done once it is on disk; the strategy is told before.
//
// With sisters (`--cards N`) each of them has a thread more, that does what the caller's does (SisterCards). A trial is
// of the card that ran it, and races against an anchor that this card timed (CardTrials). One that a card lost is tried
// on another before it is LOST; a card that loses several in a row is out, and the others go on.
#ifndef ATTUNE_SERVER_TRIALS_TRIAL_PHASE_H_
#define ATTUNE_SERVER_TRIALS_TRIAL_PHASE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/catalog/tuning_key.h"
#include "server/search/candidates.h"
#include "server/search/strategy.h"
#include "server/trials/card_shares.h"
#include "server/trials/card_trials.h"
#include "server/trials/code.h"
#include "server/trials/compile_ahead.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"
#include "server/trials/recorder.h"
#include "server/trials/sister_cards.h"
#include "server/trials/trial_claims.h"
#include "server/trials/trial_progress.h"

namespace attune::trials {

class TrialPhase {
 public:
  struct Plan {
    const catalog::TuningKey* tuning_key = nullptr;
    const search::CandidateSet* candidates = nullptr;
    search::Strategy* strategy = nullptr;
    bool retry_known = false;            // tries again what another job has tried
    bool check_all = false;              // checks all of what is slow, too
    bool plays_off = false;              // a play-off comes behind it, for the time that is said to be left
    std::vector<Sister> sisters = {};    // cards that run trials, too, once they Join
    v1::OperationCost cost_before = {};  // of the job, on problems before this one
    // How long one compile and one trial may take, when that is less than what the daemon allows all; 0: no less.
    double compile_seconds = 0;
    double trial_seconds = 0;
  };

  // What the phases of all jobs share.
  struct Means {
    const CodeSource& code;
    TrialClaims& claims;
    int compile_ahead = 1;  // artifacts compiled, or being so, ahead of each device
    Clock clock = SteadyNow;
  };

  // Compiling begins at once. All but the plan itself outlive the phase.
  TrialPhase(const Means& means, const Job& job, const Plan& plan);
  ~TrialPhase();

  // The sisters' devices are prepared, and they run trials from then on. Once, before Run.
  void Join(const worker::v1::PrepareRequest& prepare);
  bool joined() const { return joined_; }
  // Runs all on the device, and what the sisters take on theirs. Cancelled when the operation was asked to stop; what
  // was tried by then is recorded. With sisters an error of one card is the phase's only when none is left: `give_back`
  // is called when the first is lost and the others go on; it may end `use`.
  absl::Status Run(DeviceUse& use, const std::function<void()>& give_back = nullptr);
  // On the sisters alone: the first card was lost before.
  absl::Status RunOnSisters(const absl::Status& why);
  // After either, where the first card was lost: what it left behind, on the sister that decides.
  absl::Status RunLeft(const Sister& sister, DeviceUse& use);

  // After Run: the trials by candidate, those reused from the store included; without recipes.
  const std::map<size_t, v1::Trial>& trials() const { return outcomes_; }
  int64_t run() const { return progress_.run(); }            // in this phase
  int64_t compiles() const { return progress_.compiles(); }  // in this phase
  double anchor_moved() const { return anchor_moved_; }      // of the card where it moved most
  // Of compile workers, each code once.
  double compile_ms() const { return absl::ToDoubleMilliseconds(progress_.compiling()); }
  const CardShares& shares() const { return shares_; }
  // Who decides where the first card is lost: of the sisters that are not, the one that has run most. One that never
  // had its turn may be another job's for long. Null: none is left.
  const Sister* NextToDecide() const;

 private:
  // The claim of one trial, and whether another job has tried it meanwhile.
  class Claimed final : public CardTrials::Claimant {
   public:
    Claimed(TrialPhase& phase, size_t index, const catalog::TuningKey& tuning_key)
        : phase_(phase), index_(index), tuning_key_(tuning_key) {}
    bool Claim() override;
    void Release() override { claim_ = TrialClaims::Claim(); }
    // Cancelled when the job was stopped while another had the claim.
    const absl::Status& status() const { return status_; }
    std::optional<v1::Trial>& known() { return known_; }  // another job's
    TrialClaims::Claim Take() { return std::move(claim_); }

   private:
    TrialPhase& phase_;
    const size_t index_;
    const catalog::TuningKey& tuning_key_;  // of the card that is to run it
    TrialClaims::Claim claim_;
    std::optional<v1::Trial> known_;
    absl::Status status_;
  };

  // On the compile-ahead thread.
  CompileAhead::Wanted Next(bool room);
  void ReuseKnown();  // what the strategy has begun with
  void Think();
  std::optional<CompileAhead::Item> NextItem();
  std::optional<v1::Trial> Known(size_t index, const catalog::TuningKey& tuning_key);
  std::optional<v1::Trial> KnownOfAnyCard(size_t index);
  void Reuse(size_t index, v1::Trial trial);
  void Tell(size_t index, const v1::Trial& trial);
  void Compiled();

  // What a card's share had come to before a use of its device.
  struct Before {
    absl::Duration busy;  // less what the use had been busy before its trials
    v1::OperationCost cost;
  };
  Before BeforeOf(const DeviceUse& use, size_t number) const;
  void SetCostOf(CardTrials& card, size_t number, const Before& before);

  // On each card's thread.
  absl::Status Work(CardTrials& card, size_t number, const Before& before);
  absl::Status WorkOnSister(size_t sister, DeviceUse& use);
  absl::Status RunOnSisters();
  bool Left();  // for a sister that waits for its turn
  absl::Status End(absl::Status status);
  absl::Status Record(const absl::Status& status);
  void Lose(size_t card, const absl::Status& why);
  std::optional<CompileAhead::Ready> Take(size_t card);
  search::Choice Choose(const std::vector<size_t>& ready);
  absl::Status Try(const CompileAhead::Ready& ready, absl::Duration waited, CardTrials& card, size_t number);
  // The verdict without running it, if the compiler's report or a duplicate has it already. Of two that two cards have
  // in hand at once neither is the other's duplicate: both run.
  bool ResolvedWithoutRun(const Code& code, const catalog::TuningKey& tuning_key, v1::Trial& trial,
                          std::optional<size_t>& duplicate);
  // For a trial that needed no run: records it unless another job has.
  absl::Status FinishUnrun(size_t index, v1::Trial trial, size_t number,
                           std::optional<size_t> duplicate = std::nullopt);
  void Finish(size_t index, v1::Trial trial, std::optional<size_t> duplicate, TrialClaims::Claim claim, size_t number);
  // By the device; what was lost in compiling counts for the job.
  absl::Status CountLost(bool lost, CardTrials& card, size_t number);
  // Of the card that the trial says.
  const catalog::TuningKey& KeyOfCard(const v1::Trial& trial) const;
  std::optional<size_t> FindDuplicate(const v1::Trial& trial);
  void Note(size_t index, const v1::Trial& trial);
  void NoteCode(size_t index, const v1::Trial& trial);

  // On the recorder's thread.
  void Recorded(size_t index, const v1::Trial& trial);

  void UpdateProgress(const v1::Trial* trial, bool reused);

  const Means& means_;
  const Job& job_;
  const Plan plan_;
  std::mutex strategy_mutex_;  // of the strategy; nothing else is locked under it
  bool begun_ = false;         // the compile-ahead thread alone
  std::mutex mutex_;
  std::map<size_t, v1::Trial> outcomes_;
  std::map<std::string, std::vector<size_t>> by_artifact_;  // sha256 to those that ran
  double anchor_moved_ = 0;
  std::atomic<int> compiles_lost_ = 0;  // in a row
  AnchorOffer offer_;
  const CardTrials::Shared card_shared_;
  CardShares shares_;
  TrialProgress progress_;
  absl::Status failed_;  // on a sister, what is no card's; guarded by mutex_
  Recorder recorder_;
  CompileAhead ahead_;
  bool joined_ = false;
  SisterCards sister_cards_;  // last: its threads use all of the above
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TRIAL_PHASE_H_
