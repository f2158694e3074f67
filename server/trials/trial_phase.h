// The trials of a job: asked for by its strategy, compiled ahead, checked and timed on the device, recorded.
//
// Three threads: one lets the strategy think, asks it and compiles ahead (CompileAhead), the caller's lets it choose
// and feeds the device, one records (Recorder). A trial counts as done once it is on disk; the strategy is told before.
#ifndef ATTUNE_SERVER_TRIALS_TRIAL_PHASE_H_
#define ATTUNE_SERVER_TRIALS_TRIAL_PHASE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/catalog/tuning_key.h"
#include "server/search/candidates.h"
#include "server/search/strategy.h"
#include "server/trials/anchor.h"
#include "server/trials/code.h"
#include "server/trials/compile_ahead.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"
#include "server/trials/recorder.h"
#include "server/trials/trial_claims.h"

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
    v1::OperationCost cost_before = {};  // of the job, on problems before this one
    // How long one compile and one trial may take, when that is less than what the daemon allows all; 0: no less.
    double compile_seconds = 0;
    double trial_seconds = 0;
  };

  // What the phases of all jobs share.
  struct Means {
    const CodeSource& code;
    TrialClaims& claims;
    int compile_ahead = 1;  // artifacts compiled, or being so, ahead of the device
    Clock clock = SteadyNow;
  };

  // Compiling begins at once. All but the plan itself outlive the phase.
  TrialPhase(const Means& means, const Job& job, const Plan& plan);
  ~TrialPhase();

  // Runs all on the device. Cancelled when the operation was asked to stop; what was tried by then is recorded.
  absl::Status Run(DeviceUse& use);

  // After Run: the trials by candidate, those reused from the store included; without recipes.
  const std::map<size_t, v1::Trial>& trials() const { return outcomes_; }
  int64_t run() const { return run_; }            // in this phase
  int64_t compiles() const { return compiles_; }  // in this phase
  double anchor_moved() const { return anchor_.moved(); }
  double compile_ms() const { return absl::ToDoubleMilliseconds(compiling_); }  // of compile workers, each code once

 private:
  // On the compile-ahead thread.
  CompileAhead::Wanted Next(bool room);
  void ReuseKnown();  // what the strategy has begun with
  void Think();
  std::optional<CompileAhead::Item> NextItem();
  std::optional<v1::Trial> Known(size_t index);
  void Reuse(size_t index, v1::Trial trial);
  void Tell(size_t index, const v1::Trial& trial);
  void Compiled();

  // On the device's thread.
  absl::Status Try(size_t index, const absl::StatusOr<CodePtr>& code, DeviceUse& use);
  // Takes the claim and looks whether another job has tried it meanwhile, whose trial is `known` then. Cancelled when
  // the job is stopped while another has the claim.
  absl::Status TakeClaim(size_t index, TrialClaims::Claim& claim, std::optional<v1::Trial>& known);
  // The verdict without running it, if the compiler's report or a duplicate has it already.
  bool ResolvedWithoutRun(const Code& code, v1::Trial& trial, std::optional<size_t>& duplicate);
  // Runs it; nothing when another job was faster, whose trial is `known` then.
  absl::Status OnDevice(size_t index, const Code& code, v1::Trial& trial, DeviceUse& use, TrialClaims::Claim& claim,
                        std::optional<v1::Trial>& known);
  // Times the anchor when that is due.
  absl::Status TimeAnchor(DeviceUse& use);
  // Takes the best of another day for the anchor, where its code is at hand.
  void AnchorAtKnown();
  // For a trial that needed no run: records it unless another job has.
  absl::Status FinishUnrun(size_t index, v1::Trial trial, std::optional<size_t> duplicate = std::nullopt);
  absl::Status Finish(size_t index, v1::Trial trial, std::optional<size_t> duplicate, TrialClaims::Claim claim);
  std::optional<size_t> FindDuplicate(const v1::Trial& trial);
  void NoteLocked(size_t index, const v1::Trial& trial);

  // On the recorder's thread.
  void Recorded(size_t index, const v1::Trial& trial);

  void UpdateProgress(const v1::Trial* trial, bool reused);
  absl::Duration TimeLeftOfBudget();
  void UpdateEtaLocked(absl::Duration budget, v1::OperationProgress& progress) const;

  const Means& means_;
  const Job& job_;
  const Plan plan_;
  std::mutex strategy_mutex_;  // of the strategy; nothing else is locked under it
  bool begun_ = false;         // the compile-ahead thread alone
  std::mutex mutex_;
  const int64_t known_;  // of those to be asked for
  std::map<size_t, v1::Trial> outcomes_;
  std::map<std::string, std::vector<size_t>> by_artifact_;  // sha256 to those that ran
  std::optional<size_t> leader_;                            // fastest outcome
  int64_t run_ = 0;
  int64_t compiles_ = 0;
  // The device's side of the progress; guarded by mutex_.
  absl::Duration busy_;
  v1::OperationCost cost_;          // of the device, so far
  absl::Duration compiling_;        // that the codes of the trials run took, one after the other
  std::set<std::string> codes_;     // their keys, those of cached ones too
  absl::Duration play_off_;         // expected behind the trials
  Anchor anchor_;                   // the device's thread
  absl::Duration waited_for_code_;  // before the trial at hand; the device's thread
  bool anchored_ = false;           // the best of another day has been looked for; the same
  absl::Status lost_;               // why the last trial was LOST
  int lost_in_a_row_ = 0;
  Recorder recorder_;
  CompileAhead ahead_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TRIAL_PHASE_H_
