// From trials to the served variant: play-off with the incumbent, decision, promotion.
//
// A contest is about the problem, not about the job that holds it: whatever any job has measured under today's
// dependencies may challenge, so that several jobs on one problem end with the best of all. The incumbent always takes
// part unless it cannot run today, and what is decided holds against the incumbent that is served then: when another
// job has promoted in between, the play-off is held again.
#ifndef ATTUNE_SERVER_PROMOTION_CONTEST_H_
#define ATTUNE_SERVER_PROMOTION_CONTEST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/jobs/job.h"
#include "server/promotion/promotion.h"
#include "server/search/candidates.h"

namespace attune::promotion {

// The incumbent of a problem; nullopt when there is none.
absl::StatusOr<std::optional<v1::Incumbent>> ServedNow(store::Store& store, const search::Subject& subject);

// A trial's variant as today's families have it, feasible for the subject; otherwise why not.
absl::StatusOr<space::Variant> TodaysVariant(const v1::Trial& trial, const search::Subject& subject,
                                             const std::vector<std::shared_ptr<const space::Family>>& families);

struct ContestRules {
  double near = 1.10;          // who plays off: promotion.h, PickContestants
  double least_speedup = 1.0;  // who wins: promotion.h, Decide
  std::string challenger;      // a variant: nobody else challenges. Empty: every good trial does
  bool pin = false;            // serve the challenger, if it comes through: promotion.h, Pin
  std::string why;             // said of the pin
};

struct ContestResult {
  std::optional<v1::Incumbent> before;  // that the play-off was held against
  std::optional<v1::Incumbent> served;  // afterwards
  std::optional<v1::Trial> winner;      // with this play-off's timing
  bool promoted = false;
  std::string why;
  std::vector<v1::Trial> play_off;  // all that were timed in it, best first; with recipes
};

// Plays off the best and the incumbent, checked on fresh data; who fails there is recorded as a trial and out. An
// incumbent without a trial under today's dependencies is tried first. Promotes by the rules of promotion.h.
// Unavailable when the infrastructure lost the incumbent's trial.
absl::StatusOr<ContestResult> HoldContest(jobs::JobContext& context, const search::Subject& subject,
                                          const ContestRules& rules, trials::DeviceSession& session);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_CONTEST_H_
