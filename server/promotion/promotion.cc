#include "server/promotion/promotion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/measure/measure.h"
#include "server/trials/trial.h"

namespace attune::promotion {
namespace {

bool SameCode(const v1::Trial& a, const v1::Trial& b) {
  return (!a.identical_to().empty() && (a.identical_to() == b.name() || a.identical_to() == b.identical_to())) ||
         (!b.identical_to().empty() && b.identical_to() == a.name());
}

std::string Figures(const v1::Timing& timing) {
  return absl::StrFormat("%.2f us [%.2f, %.2f]", timing.median_us(), timing.low_us(), timing.high_us());
}

std::string TieWords(size_t ties) {
  if (ties == 0) return "";
  return absl::StrCat("; statistically tied with ", ties, ties == 1 ? " other" : " others");
}

// Fastest of those that may be promoted.
std::optional<size_t> Fastest(absl::Span<const v1::Trial> contestants, const std::vector<size_t>& among) {
  std::optional<size_t> best;
  for (size_t i : among) {
    if (!best.has_value() || contestants[i].timing().median_us() < contestants[*best].timing().median_us()) best = i;
  }
  return best;
}

std::vector<size_t> TiesWith(absl::Span<const v1::Trial> contestants, size_t best) {
  std::vector<size_t> ties;
  for (size_t i = 0; i < contestants.size(); ++i) {
    if (i == best || !trials::Timed(contestants[i]) || contestants[i].timing().contended()) continue;
    if (measure::Compare(contestants[i].timing(), contestants[best].timing()) == measure::Comparison::kTie) {
      ties.push_back(i);
    }
  }
  return ties;
}

Decision KeepIncumbent(absl::Span<const v1::Trial> contestants, const IncumbentState& standing,
                       absl::string_view reason) {
  const v1::Trial& incumbent = contestants[*standing.contestant];
  Decision decision;
  decision.best = standing.contestant;
  decision.ties = TiesWith(contestants, *standing.contestant);
  decision.promote = standing.stale && !incumbent.timing().contended();
  decision.why =
      absl::StrCat("the incumbent is retained at ", Figures(incumbent.timing()), ": ", reason,
                   TieWords(decision.ties.size()), decision.promote ? "; confirmed under today's dependencies" : "");
  return decision;
}

}  // namespace

std::vector<size_t> PickContestants(const std::map<size_t, v1::Trial>& trials, size_t size,
                                    std::optional<size_t> incumbent, double near) {
  std::vector<size_t> timed;
  for (const auto& [index, trial] : trials) {
    if (trials::Timed(trial)) timed.push_back(index);
  }
  std::stable_sort(timed.begin(), timed.end(), [&](size_t a, size_t b) {
    return trials.at(a).timing().median_us() < trials.at(b).timing().median_us();
  });
  std::vector<size_t> picked;
  const auto pick = [&](size_t index) {
    for (size_t other : picked) {
      if (other == index || SameCode(trials.at(other), trials.at(index))) return;
    }
    picked.push_back(index);
  };
  if (incumbent.has_value() && trials.contains(*incumbent) && trials::Timed(trials.at(*incumbent))) pick(*incumbent);
  const size_t most = size + picked.size();
  for (size_t index : timed) {
    if (picked.size() == most) break;
    if (trials.at(index).timing().low_us() > near * trials.at(timed.front()).timing().high_us()) continue;
    pick(index);
  }
  std::stable_sort(picked.begin(), picked.end(), [&](size_t a, size_t b) {
    return trials.at(a).timing().median_us() < trials.at(b).timing().median_us();
  });
  return picked;
}

Decision Decide(absl::Span<const v1::Trial> contestants, const IncumbentState& standing, double least_speedup) {
  std::vector<size_t> eligible;
  bool contended = false;
  for (size_t i = 0; i < contestants.size(); ++i) {
    if (!trials::Timed(contestants[i])) continue;
    if (contestants[i].timing().contended()) {
      contended = true;
    } else if (i != standing.contestant) {
      eligible.push_back(i);
    }
  }

  const bool duel = standing.contestant.has_value() && trials::Timed(contestants[*standing.contestant]);
  if (duel) {
    const v1::Timing& incumbent = contestants[*standing.contestant].timing();
    if (incumbent.contended()) {
      return KeepIncumbent(contestants, standing, "another process was on the device while it was timed");
    }
    std::vector<size_t> faster;
    for (size_t i : eligible) {
      if (measure::Compare(contestants[i].timing(), incumbent) == measure::Comparison::kFaster) faster.push_back(i);
    }
    const std::optional<size_t> best = Fastest(contestants, faster);
    if (!best.has_value()) {
      return KeepIncumbent(
          contestants, standing,
          eligible.empty() ? "there was no challenger" : "no challenger's interval lies below its own");
    }
    const v1::Timing& challenger = contestants[*best].timing();
    const double speedup = incumbent.median_us() / challenger.median_us();
    if (standing.pinned) {
      return KeepIncumbent(contestants, standing,
                           absl::StrFormat("it is pinned, though the challenger at %s is %.3f times as fast",
                                           Figures(challenger), speedup));
    }
    if (speedup < least_speedup) {
      return KeepIncumbent(contestants, standing,
                           absl::StrFormat("the challenger at %s is %.3f times as fast, asked for are %.3f",
                                           Figures(challenger), speedup, least_speedup));
    }
    Decision decision{best, true, TiesWith(contestants, *best), ""};
    decision.why = absl::StrFormat("%s is %.3f times as fast as the incumbent's %s%s", Figures(challenger), speedup,
                                   Figures(incumbent), TieWords(decision.ties.size()));
    return decision;
  }

  Decision decision;
  decision.best = Fastest(contestants, eligible);
  if (!decision.best.has_value()) {
    decision.why = contended ? "another process was on the device during the play-off: nothing is promoted"
                             : "no variant is right and timed";
    return decision;
  }
  decision.promote = true;
  decision.ties = TiesWith(contestants, *decision.best);
  const std::string reason =
      standing.exists ? absl::StrCat("the incumbent before it ", standing.absence) : "there was no incumbent";
  decision.why = absl::StrCat(Figures(contestants[*decision.best].timing()), " is the best; ", reason,
                              TieWords(decision.ties.size()));
  return decision;
}

Decision Pin(absl::Span<const v1::Trial> contestants, const IncumbentState& standing, size_t pinned) {
  const v1::Timing& timing = contestants[pinned].timing();
  Decision decision{pinned, true, TiesWith(contestants, pinned), ""};
  decision.why = absl::StrCat("pinned at ", Figures(timing));
  if (!standing.contestant.has_value() || standing.contestant == pinned) return decision;
  const v1::Timing& before = contestants[*standing.contestant].timing();
  const double speedup = before.median_us() / timing.median_us();
  absl::StrAppend(&decision.why, speedup < 1 ? ", slower than " : ", in the place of ", "the incumbent before it at ",
                  Figures(before));
  return decision;
}

}  // namespace attune::promotion
