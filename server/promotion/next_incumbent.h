// What is served after a contest: a pure function of its end and of what was served before.
#ifndef ATTUNE_SERVER_PROMOTION_NEXT_INCUMBENT_H_
#define ATTUNE_SERVER_PROMOTION_NEXT_INCUMBENT_H_

#include <optional>
#include <set>
#include <string>

#include "absl/types/span.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/promotion/alternatives.h"
#include "server/promotion/contest.h"
#include "server/promotion/promotion.h"
#include "server/trials/trial_phase.h"

namespace attune::promotion {

// One code, built alike.
bool IsTheSameCode(const v1::Trial& before, const v1::Trial& now);
// And `before` is of the card.
bool IsTheSame(const v1::Trial& before, const v1::Trial& now, const v1::Device& card);

struct EndOfContest {
  const catalog::TuningKey& tuning_key;
  const trials::Families& families;
  const ContestRules& rules;
  const std::string& job;
  const std::optional<v1::Incumbent>& before;
  absl::Span<const v1::Trial> timed;   // in the play-off
  absl::Span<const BestBy> chosen;     // among `timed`; empty: nobody asked, or it is not known
  const std::set<std::string>& wrong;  // variants, by trials of today
};

// Whether `winner` is pinned from now on.
bool IsPinned(const ContestRules& rules, const std::optional<v1::Incumbent>& before, const v1::Trial& winner);

// `decision` is among the end's `timed`, of which the best is served. A winner whose energy was not measured keeps what
// an earlier play-off has measured of it; where no alternatives were chosen, those of before stay by the rules of
// alternatives.h.
v1::Incumbent NextIncumbent(const EndOfContest& end, const Decision& decision);

// The incumbent as it is, its time and the date of that too, with the alternatives that were chosen. What it takes in
// joules is that of this play-off, which they were compared in.
v1::Incumbent WithChosenAlternatives(const EndOfContest& end, const Decision& decision);

// The incumbent as it is, its time and the date of that too, without alternatives that are wrong; nullopt where there
// are none. The others are not looked at: their answers say what has changed.
std::optional<v1::Incumbent> WithoutWrongAlternatives(const EndOfContest& end);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_NEXT_INCUMBENT_H_
