// What a phase says of its trials while they run: how many, how they ended, the best so far, costs and the time left.
#ifndef ATTUNE_SERVER_TRIALS_TRIAL_PROGRESS_H_
#define ATTUNE_SERVER_TRIALS_TRIAL_PROGRESS_H_

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/trials/card_shares.h"
#include "server/trials/job.h"

namespace attune::trials {

// Thread-safe. Job and shares outlive it.
class TrialProgress {
 public:
  struct Setting {
    v1::OperationCost before = {};  // that the job had cost
    int64_t known = 0;              // of the trials to be asked for
    int compilers = 1;
  };
  TrialProgress(const Job& job, const CardShares& shares, Setting setting)
      : job_(job), shares_(shares), setting_(std::move(setting)) {}

  void CountCompile();
  void CountRun();
  // A trial's code, and what compiling it took: nothing when it was cached.
  void AddCode(const std::string& compile_key, absl::Duration compiling);
  void SetPlayOff(absl::Duration expected);

  // Tells the job of a trial that has ended, or is `reused`; nullptr: of compiles and cards alone. `budget`: of time,
  // that is left.
  void Update(const v1::Trial* trial, bool reused, absl::Duration budget);

  int64_t run() const;
  int64_t compiles() const;
  absl::Duration compiling() const;  // the codes of the trials run, one after the other

 private:
  void UpdateEtaLocked(absl::Duration budget, v1::OperationProgress& progress) const;

  const Job& job_;
  const CardShares& shares_;
  const Setting setting_;
  mutable std::mutex mutex_;  // guards what follows
  int64_t run_ = 0;
  int64_t compiles_ = 0;
  absl::Duration compiling_;
  std::set<std::string> codes_;  // of the trials run, by compile key, cached ones too
  absl::Duration play_off_;      // expected behind the trials
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TRIAL_PROGRESS_H_
