#include "client/replay/league.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/replay/replay.h"
#include "server/base/clock.h"

namespace attune::replay {
namespace {

constexpr double kSmallShare = 0.05;  // of a space

const std::map<std::string, attune::v1::Strategy::Kind>& Kinds() {
  static const auto* const kinds =
      new std::map<std::string, attune::v1::Strategy::Kind>{{"evolution", attune::v1::Strategy::KIND_EVOLUTION},
                                                            {"exhaustive", attune::v1::Strategy::KIND_EXHAUSTIVE},
                                                            {"guided", attune::v1::Strategy::KIND_GUIDED},
                                                            {"random", attune::v1::Strategy::KIND_RANDOM}};
  return *kinds;
}

std::string Text(const std::optional<size_t>& trials) { return trials.has_value() ? absl::StrCat(*trials) : "-"; }

std::string Percent(double share) { return absl::StrFormat("%.3g %%", share * 100); }

// Of the runs, how many needed no more than a small share of the space.
double ShareOfQuick(const std::vector<std::optional<size_t>>& trials, size_t candidates) {
  const double few = std::ceil(kSmallShare * static_cast<double>(candidates));
  const auto quick = std::count_if(trials.begin(), trials.end(), [&](const std::optional<size_t>& one) {
    return one.has_value() && static_cast<double>(*one) <= few;
  });
  return static_cast<double>(quick) / static_cast<double>(std::max<size_t>(trials.size(), 1));
}

std::vector<Improvement> ImprovementsOf(const std::vector<size_t>& tried, const RecordedSpace& space) {
  std::vector<Improvement> improvements;
  for (size_t i = 0; i < tried.size(); ++i) {
    const search::Outcome& outcome = space.outcomes[tried[i]];
    if (!outcome.ok || (!improvements.empty() && outcome.us >= improvements.back().us)) continue;
    improvements.push_back({i + 1, outcome.us});
  }
  return improvements;
}

}  // namespace

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : Kinds()) names.push_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<search::Strategy>> StrategyNamed(const std::string& name, search::Field field,
                                                                uint64_t seed) {
  const auto kind = Kinds().find(name);
  if (kind == Kinds().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--strategies has '", name, "'; allowed: ", absl::StrJoin(StrategyNames(), ", ")));
  }
  attune::v1::Strategy description;
  description.set_kind(kind->second);
  description.set_effort(attune::v1::Strategy::EFFORT_EXHAUSTIVE);
  description.set_seed(seed);
  return search::MakeStrategy(description, std::move(field), seed, SteadyNow);
}

absl::StatusOr<std::vector<Standing>> PlayLeague(const std::vector<RecordedSpace>& spaces,
                                                 const LeagueOptions& options) {
  const double closest = *std::min_element(options.shares.begin(), options.shares.end());
  std::vector<Standing> standings;
  for (const RecordedSpace& space : spaces) {
    const auto most = static_cast<size_t>(std::ceil(options.limit * static_cast<double>(space.outcomes.size())));
    for (const std::string& name : options.strategies) {
      Standing standing{space.name, name, space.outcomes.size(), {}, {}};
      standing.trials.resize(options.shares.size());
      for (int seed = 1; seed <= options.seeds; ++seed) {
        const auto strategy = StrategyNamed(name, space.field, static_cast<uint64_t>(seed));
        if (!strategy.ok()) return strategy.status();
        const double enough_us = options.whole ? 0 : space.best_us * (1 + closest);
        const std::vector<size_t> tried = Replay(**strategy, space, most, enough_us);
        standing.improvements.push_back(ImprovementsOf(tried, space));
        for (size_t i = 0; i < options.shares.size(); ++i) {
          standing.trials[i].push_back(TrialsToWithin(options.shares[i], tried, space));
        }
      }
      standings.push_back(std::move(standing));
    }
  }
  return standings;
}

std::optional<size_t> Quantile(std::vector<std::optional<size_t>> trials, double quantile) {
  std::sort(trials.begin(), trials.end(),
            [](const auto& a, const auto& b) { return a.has_value() != b.has_value() ? a.has_value() : a < b; });
  const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(trials.size())));
  return trials[std::max<size_t>(rank, 1) - 1];
}

std::string Markdown(const std::vector<Standing>& standings, const LeagueOptions& options) {
  std::string text = "| space | variants | strategy |";
  for (double share : options.shares) absl::StrAppend(&text, " to ", Percent(share), " |");
  absl::StrAppend(&text, " to ", Percent(options.shares.back()), " in 5 % |\n|---|---|---|");
  for (size_t i = 0; i <= options.shares.size(); ++i) absl::StrAppend(&text, "---|");
  absl::StrAppend(&text, "\n");
  for (const Standing& standing : standings) {
    absl::StrAppend(&text, "| ", standing.space, " | ", standing.candidates, " | ", standing.strategy, " |");
    for (const auto& trials : standing.trials) {
      absl::StrAppend(&text, " ", Text(Quantile(trials, 0.5)), " / ", Text(Quantile(trials, 0.95)), " |");
    }
    absl::StrAppend(&text, " ", Percent(ShareOfQuick(standing.trials.back(), standing.candidates)), " |\n");
  }
  return text;
}

std::string Csv(const std::vector<Standing>& standings, const LeagueOptions& options) {
  std::string text = "space,variants,strategy,within,seed,trials\n";
  for (const Standing& standing : standings) {
    for (size_t share = 0; share < standing.trials.size(); ++share) {
      for (size_t i = 0; i < standing.trials[share].size(); ++i) {
        const std::optional<size_t>& trials = standing.trials[share][i];
        absl::StrAppend(&text, standing.space, ",", standing.candidates, ",", standing.strategy, ",",
                        options.shares[share], ",", i + 1, ",", trials.has_value() ? absl::StrCat(*trials) : "", "\n");
      }
    }
  }
  return text;
}

std::string CurvesCsv(const std::vector<Standing>& standings) {
  std::string text = "space,strategy,seed,trial,best_us\n";
  for (const Standing& standing : standings) {
    for (size_t i = 0; i < standing.improvements.size(); ++i) {
      for (const Improvement& one : standing.improvements[i]) {
        absl::StrAppendFormat(&text, "%s,%s,%d,%d,%.9g\n", standing.space, standing.strategy, i + 1, one.trial, one.us);
      }
    }
  }
  return text;
}

}  // namespace attune::replay
