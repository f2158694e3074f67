#include "server/promotion/promotion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

std::string Unclear(size_t contestants) {
  if (contestants == 0) return "";
  return absl::StrCat("; of ", contestants, " it is unclear");
}

// Who is fastest of those that may be promoted.
std::optional<size_t> Fastest(const measure::PairedRounds& rounds, const std::vector<size_t>& among) {
  if (among.empty()) return std::nullopt;
  return rounds.Fastest(among);
}

std::vector<size_t> TiesWith(absl::Span<const v1::Trial> contestants, const measure::PairedRounds& rounds,
                             size_t best) {
  std::vector<size_t> ties;
  for (size_t i = 0; i < contestants.size(); ++i) {
    if (i == best || !trials::Timed(contestants[i]) || contestants[i].timing().contended()) continue;
    if (rounds.Of(i, best).answer == measure::Answer::kSame) ties.push_back(i);
  }
  return ties;
}

Decision KeepIncumbent(absl::Span<const v1::Trial> contestants, const measure::PairedRounds& rounds,
                       const IncumbentState& standing, absl::string_view reason) {
  const v1::Trial& incumbent = contestants[*standing.contestant];
  Decision decision;
  decision.best = standing.contestant;
  decision.ties = TiesWith(contestants, rounds, *standing.contestant);
  decision.promote = standing.stale && !incumbent.timing().contended();
  decision.why =
      absl::StrCat("the incumbent is retained at ", Figures(incumbent.timing()), ": ", reason,
                   TieWords(decision.ties.size()), decision.promote ? "; confirmed under today's dependencies" : "");
  return decision;
}

}  // namespace

std::vector<size_t> PickContestants(const std::map<size_t, v1::Trial>& trials, size_t size,
                                    std::optional<size_t> incumbent, double near, const std::vector<size_t>& others) {
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
  std::vector<size_t> seated = others;
  if (incumbent.has_value()) seated.insert(seated.begin(), *incumbent);
  for (size_t index : seated) {
    if (trials.contains(index) && trials::Timed(trials.at(index))) pick(index);
  }
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

Decision Decide(absl::Span<const v1::Trial> contestants, const measure::PairedRounds& rounds,
                const IncumbentState& standing, double least_speedup) {
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
    const auto keep = [&](absl::string_view reason) { return KeepIncumbent(contestants, rounds, standing, reason); };
    const v1::Timing& incumbent = contestants[*standing.contestant].timing();
    if (incumbent.contended()) {
      return keep("another process was on the device while it was timed");
    }
    std::vector<size_t> faster;
    size_t unclear = 0;
    for (size_t i : eligible) {
      const measure::Answer answer = rounds.Of(i, *standing.contestant).answer;
      if (answer == measure::Answer::kFaster) faster.push_back(i);
      unclear += answer == measure::Answer::kUnclear ? 1 : 0;
    }
    const std::optional<size_t> best = Fastest(rounds, faster);
    if (!best.has_value()) {
      return keep(eligible.empty()
                      ? "there was no challenger"
                      : absl::StrCat("no challenger is faster by more than 0.5 % for certain", Unclear(unclear)));
    }
    const v1::Timing& challenger = contestants[*best].timing();
    const double speedup = 1 + rounds.Of(*best, *standing.contestant).middle;
    if (standing.pinned) {
      return keep(absl::StrFormat("it is pinned, though the challenger at %s is %.3f times as fast",
                                  Figures(challenger), speedup));
    }
    if (speedup < least_speedup) {
      return keep(absl::StrFormat("the challenger at %s is %.3f times as fast, asked for are %.3f", Figures(challenger),
                                  speedup, least_speedup));
    }
    Decision decision{best, true, TiesWith(contestants, rounds, *best), ""};
    decision.why = absl::StrFormat("%s is %.3f times as fast as the incumbent's %s%s", Figures(challenger), speedup,
                                   Figures(incumbent), TieWords(decision.ties.size()));
    return decision;
  }

  Decision decision;
  decision.best = Fastest(rounds, eligible);
  if (!decision.best.has_value()) {
    decision.why = contended ? "another process was on the device during the play-off: nothing is promoted"
                             : "no variant is right and timed";
    return decision;
  }
  decision.promote = true;
  decision.ties = TiesWith(contestants, rounds, *decision.best);
  const std::string reason =
      standing.exists ? absl::StrCat("the incumbent before it ", standing.absence) : "there was no incumbent";
  decision.why = absl::StrCat(Figures(contestants[*decision.best].timing()), " is the best; ", reason,
                              TieWords(decision.ties.size()));
  return decision;
}

Decision Pin(absl::Span<const v1::Trial> contestants, const measure::PairedRounds& rounds,
             const IncumbentState& standing, size_t pinned) {
  const v1::Timing& timing = contestants[pinned].timing();
  Decision decision{pinned, true, TiesWith(contestants, rounds, pinned), ""};
  decision.why = absl::StrCat("pinned at ", Figures(timing));
  if (!standing.contestant.has_value() || standing.contestant == pinned) return decision;
  const v1::Timing& before = contestants[*standing.contestant].timing();
  const double speedup = 1 + rounds.Of(pinned, *standing.contestant).middle;
  absl::StrAppend(&decision.why, speedup < 1 ? ", slower than " : ", in the place of ", "the incumbent before it at ",
                  Figures(before));
  return decision;
}

}  // namespace attune::promotion
