#include "server/promotion/next_incumbent.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/catalog/host.h"

namespace attune::promotion {
namespace {

// Of the winner, where an earlier play-off measured it; otherwise null.
const v1::Energy* KnownEnergy(const EndOfContest& end, const v1::Trial& winner) {
  if (!end.before.has_value()) return nullptr;
  const v1::Device& card = end.tuning_key.device;
  if (end.before->timing().has_energy() && IsTheSame(end.before->trial(), winner, card)) {
    return &end.before->timing().energy();
  }
  for (const v1::Alternative& one : end.before->alternatives()) {
    if (IsTheSame(one.trial(), winner, card)) return &one.trial().timing().energy();
  }
  return nullptr;
}

void AddChosen(const EndOfContest& end, absl::Time now, v1::Incumbent& incumbent) {
  for (const BestBy& best : end.chosen) {
    v1::Alternative& alternative = *incumbent.add_alternatives();
    alternative.set_objective(best.objective);
    if (!best.contestant.has_value()) continue;
    *alternative.mutable_trial() = end.timed[*best.contestant];
    SetTimestamp(now, alternative.mutable_trial()->mutable_finish_time());
  }
}

// Those of the incumbent before, where nothing was chosen anew. That it was itself the best is true of no other.
void AddKept(const EndOfContest& end, v1::Incumbent& incumbent) {
  for (const v1::Alternative& one : end.before->alternatives()) {
    if (one.has_trial() || IsTheSame(end.before->trial(), incumbent.trial(), end.tuning_key.device)) {
      *incumbent.add_alternatives() = one;
    }
  }
}

// Whose energy may be known beside the alternatives': the incumbent's before, and those of this play-off.
std::vector<v1::Trial> KnownBeside(const EndOfContest& end) {
  std::vector<v1::Trial> known(end.timed.begin(), end.timed.end());
  *known.emplace_back(end.before->trial()).mutable_timing() = end.before->timing();
  return known;
}

}  // namespace

bool IsTheSameCode(const v1::Trial& before, const v1::Trial& now) {
  return now.variant().text() == before.variant().text() &&
         catalog::SameDependencies(before.dependencies(), now.dependencies());
}

bool IsTheSame(const v1::Trial& before, const v1::Trial& now, const v1::Device& card) {
  return IsTheSameCode(before, now) && catalog::IsOf(catalog::InstanceOf(before), card);
}

bool IsPinned(const ContestRules& rules, const std::optional<v1::Incumbent>& before, const v1::Trial& winner) {
  const bool same = before.has_value() && before->trial().variant().text() == winner.variant().text();
  return rules.pin || (same && before->pinned());
}

v1::Incumbent NextIncumbent(const EndOfContest& end, const Decision& decision) {
  const v1::Trial& winner = end.timed[*decision.best];
  v1::Incumbent incumbent;
  *incumbent.mutable_problem() = ToProto(end.tuning_key.problem);
  incumbent.set_problem_text(end.tuning_key.problem_text);
  incumbent.set_device_class(end.tuning_key.device.fingerprint());
  incumbent.set_policy(end.tuning_key.policy);
  *incumbent.mutable_trial() = winner;
  *incumbent.mutable_timing() = winner.timing();
  if (const v1::Energy* known = KnownEnergy(end, winner); known != nullptr && !winner.timing().has_energy()) {
    *incumbent.mutable_timing()->mutable_energy() = *known;
  }
  const absl::Time now = absl::Now();
  incumbent.set_pinned(IsPinned(end.rules, end.before, winner));
  SetTimestamp(now, incumbent.mutable_promote_time());
  incumbent.set_job(end.job);
  incumbent.set_why(decision.why);
  if (end.rules.claim.has_value()) *incumbent.mutable_claim() = *end.rules.claim;
  for (size_t i : decision.ties) *incumbent.add_ties() = end.timed[i].variant();
  AddChosen(end, now, incumbent);
  const bool keeps = end.chosen.empty() && end.before.has_value();
  if (keeps) AddKept(end, incumbent);
  const auto wrong = [&end](const v1::Trial& trial) { return end.wrong.contains(trial.variant().text()); };
  DropChanged(end.tuning_key, end.families, wrong, incumbent);
  if (keeps) CompareWithFastest(KnownBeside(end), incumbent);
  return incumbent;
}

v1::Incumbent WithChosenAlternatives(const EndOfContest& end, const Decision& decision) {
  v1::Incumbent next = *end.before;
  next.clear_alternatives();
  AddChosen(end, absl::Now(), next);
  if (next.has_timing()) *next.mutable_timing()->mutable_energy() = end.timed[*decision.best].timing().energy();
  next.clear_device_id();  // the card may have another by now
  next.set_job(end.job);
  next.set_why(absl::StrCat("the same, with alternatives; ", decision.why));
  return next;
}

std::optional<v1::Incumbent> WithoutWrongAlternatives(const EndOfContest& end) {
  if (!end.before.has_value()) return std::nullopt;
  v1::Incumbent next = *end.before;
  std::vector<std::string> out;
  next.clear_alternatives();
  for (const v1::Alternative& one : end.before->alternatives()) {
    if (one.has_trial() && end.wrong.contains(one.trial().variant().text())) {
      out.push_back(one.trial().variant().text());
    } else {
      *next.add_alternatives() = one;
    }
  }
  if (out.empty()) return std::nullopt;
  next.clear_device_id();  // the card may have another by now
  next.set_job(end.job);
  next.set_why(absl::StrCat("the same, without ", absl::StrJoin(out, " and "), ", which is wrong"));
  return next;
}

}  // namespace attune::promotion
