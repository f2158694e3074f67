#include "client/replay/regret.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/clock.h"
#include "server/search/confidence.h"
#include "server/search/strategy.h"

namespace attune::replay {
namespace {

constexpr double kSame = 0.01;  // winners so near each other count as the same
constexpr double kSure = 0.95;  // as a search with standard effort ends

SearchEnd RunOnce(const RecordedSpace& space, const RegretOptions& options, uint64_t seed) {
  attune::v1::Strategy description;
  description.set_kind(attune::v1::Strategy::KIND_GUIDED);
  description.set_effort(options.effort);
  description.set_seed(seed);
  const auto strategy = search::MakeStrategy(description, FieldOn(options.host, space), seed, SteadyNow);
  const ReplayRun run = ReplayOn(options.host, *strategy, space);
  double best_us = std::numeric_limits<double>::infinity();
  for (size_t candidate : run.tried) {
    const search::Outcome& outcome = space.outcomes[candidate];
    if (outcome.ok) best_us = std::min(best_us, outcome.us);
  }
  const auto claim = strategy->Claim();
  return {run.tried.size(), best_us / space.best_us - 1, claim.has_value() ? claim->confidence() : 0, run.codes,
          run.seconds};
}

template <typename Value>
double QuantileOf(const std::vector<SearchEnd>& runs, double quantile, Value value) {
  std::vector<double> values;
  for (const SearchEnd& run : runs) values.push_back(value(run));
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

double Percent(size_t part, size_t of) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<size_t>(of, 1));
}

size_t CountWithin(const std::vector<SearchEnd>& runs, double share) {
  return static_cast<size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const SearchEnd& run) { return run.regret <= share; }));
}

struct Pairs {
  size_t all = 0;
  size_t same = 0;  // whose winners are as fast as each other
};

Pairs PairsOf(const std::vector<SearchEnd>& runs) {
  Pairs pairs;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto [faster, slower] = std::minmax({1 + runs[i].regret, 1 + runs[j].regret});
      ++pairs.all;
      if (std::isfinite(slower) && slower <= faster * (1 + kSame)) ++pairs.same;
    }
  }
  return pairs;
}

std::string Line(const std::string& name, const std::string& variants, const std::vector<SearchEnd>& runs,
                 const Pairs& pairs) {
  const auto regret = [](const SearchEnd& run) { return run.regret; };
  std::vector<SearchEnd> sure;
  for (const SearchEnd& run : runs) {
    if (run.confidence >= kSure) sure.push_back(run);
  }
  return absl::StrFormat(
      "| %s | %s | %.0f | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.2g | %d | %d |\n", name,
      variants, QuantileOf(runs, 0.5, [](const SearchEnd& run) { return static_cast<double>(run.trials); }),
      100 * QuantileOf(runs, 0.5, regret), 100 * QuantileOf(runs, 0.95, regret), 100 * QuantileOf(runs, 1, regret),
      Percent(CountWithin(runs, kSame), runs.size()), Percent(CountWithin(runs, search::kWithin), runs.size()),
      Percent(pairs.same, pairs.all), QuantileOf(runs, 0.5, [](const SearchEnd& run) { return run.confidence; }),
      sure.size(), CountWithin(sure, search::kWithin));
}

}  // namespace

std::vector<Ends> SearchToTheEnd(const std::vector<RecordedSpace>& spaces, const RegretOptions& options) {
  std::vector<Ends> all;
  for (const RecordedSpace& space : spaces) {
    Ends ends{space.name, space.outcomes.size(), {}};
    for (int seed = 1; seed <= options.seeds; ++seed) {
      ends.runs.push_back(RunOnce(space, options, static_cast<uint64_t>(seed)));
    }
    all.push_back(std::move(ends));
  }
  return all;
}

std::string Markdown(const std::vector<Ends>& ends) {
  std::string text = absl::StrFormat(
      "| problem | variants | trials | above the best, median | 95th | most | within %.3g %% | within %.3g %% | two "
      "seeds "
      "within %.3g %% | says, median | says %.3g %% | of these right "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      kSame * 100, search::kWithin * 100, kSame * 100, kSure * 100);
  std::vector<SearchEnd> runs;
  Pairs pairs;
  for (const Ends& one : ends) {
    const Pairs own = PairsOf(one.runs);
    absl::StrAppend(&text, Line(one.space, absl::StrCat(one.candidates), one.runs, own));
    runs.insert(runs.end(), one.runs.begin(), one.runs.end());
    pairs.all += own.all;
    pairs.same += own.same;
  }
  if (!runs.empty()) absl::StrAppend(&text, Line(absl::StrCat("all ", ends.size()), "", runs, pairs));
  return text;
}

std::string Csv(const std::vector<Ends>& ends) {
  std::string text = "space,variants,seed,trials,above_best,confidence,codes,seconds\n";
  for (const Ends& one : ends) {
    for (size_t i = 0; i < one.runs.size(); ++i) {
      const SearchEnd& run = one.runs[i];
      absl::StrAppendFormat(&text, "%s,%d,%d,%d,%.5f,%.6g,%d,%.3f\n", one.space, one.candidates, i + 1, run.trials,
                            run.regret, run.confidence, run.codes, run.seconds);
    }
  }
  return text;
}

}  // namespace attune::replay
