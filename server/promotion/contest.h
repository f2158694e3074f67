// From trials to the served variant: play-off with the incumbent, decision, promotion.
//
// A contest is about the problem, not about the job that holds it: whatever any job has measured under today's
// dependencies may challenge, so that several jobs on one problem end with the best of all. The incumbent always takes
// part unless it cannot run today, and what is decided holds against the incumbent that is served then: when another
// job has promoted in between, the play-off is held again.
#ifndef ATTUNE_SERVER_PROMOTION_CONTEST_H_
#define ATTUNE_SERVER_PROMOTION_CONTEST_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/results.h"
#include "server/catalog/tuning_key.h"
#include "server/promotion/promotion.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"
#include "server/trials/reference.h"
#include "server/trials/trial_phase.h"

namespace attune::promotion {

struct ContestRules {
  double near = 1.10;          // who plays off: promotion.h, PickContestants
  double least_speedup = 1.0;  // who wins: promotion.h, Decide
  std::string challenger;      // a variant: nobody else challenges. Empty: every good trial does
  bool pin = false;            // serve the challenger, if it comes through: promotion.h, Pin
  std::string why;             // said of the pin
  // An incumbent of this card that is retained is served with this play-off's time from then on.
  bool keep_time = true;
  bool energy = false;  // measure what a run of each contestant takes in joules, too
  // ENERGY and EDP, which imply `energy`: a wider field, and alternatives are chosen of it (alternatives.h).
  v1::Objective objective = v1::OBJECTIVE_TIME;
  std::optional<v1::SearchClaim> claim = {};  // of the search before: said of what is promoted
  // Asked of the trial of what would be served in place of another: why it may not be, a sentence; it is then out, and
  // the others play off again. Empty: it may.
  std::function<absl::StatusOr<std::string>(const v1::Trial& winner, trials::DeviceUse& use)> objection = {};
};

struct ContestResult {
  std::optional<v1::Incumbent> before;  // that the play-off was held against
  std::optional<v1::Incumbent> served;  // afterwards
  std::optional<v1::Trial> winner;      // with this play-off's timing
  bool promoted = false;                // not when the incumbent before was retained with a new time
  std::string why;
  std::vector<v1::Trial> play_off;  // all that were timed in it, best first; with recipes
};

// promotion.h, PickContestants.
struct FieldRules {
  size_t size = 0;
  double near = 1;
};

// Holds contests for all jobs. Thread-safe; what it is given outlives it.
class Contests {
 public:
  struct Options {
    catalog::Results& results;
    const trials::Families& families;
    const trials::TrialPhase::Means& means;
    size_t play_off_size = 6;
  };
  explicit Contests(const Options& options) : options_(options) {}
  // Who plays off under these rules.
  FieldRules FieldOf(const ContestRules& rules) const;

  // Plays off the best and the incumbent, checked on fresh data; who fails there is recorded as a trial and out. An
  // incumbent without a trial under today's dependencies is tried first. Promotes by the rules of promotion.h; what is
  // served keeps alternatives by those of alternatives.h.
  // Unavailable when the infrastructure lost the incumbent's trial.
  absl::StatusOr<ContestResult> Hold(const catalog::TuningKey& tuning_key, const ContestRules& rules,
                                     const trials::Job& job, trials::DeviceUse& use) const;

 private:
  const Options options_;
};

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_CONTEST_H_
