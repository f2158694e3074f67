#include "client/replay/portfolio_loss.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/portfolio.h"
#include "client/replay/likeness.h"
#include "client/replay/recorded_space.h"

namespace attune::replay {
namespace {

using cli::Portfolio;
using cli::PortfolioTimes;

absl::Status CheckAreOfOne(const std::vector<v1::Recording>& recordings) {
  if (recordings.size() < 2) {
    return absl::InvalidArgumentError("name two recordings or more: a portfolio is for several problems");
  }
  const v1::Recording& first = recordings.front();
  std::map<std::string, std::string> sources;
  for (const v1::Recording& recording : recordings) {
    if (recording.device_class() != first.device_class() || recording.policy() != first.policy()) {
      return absl::InvalidArgumentError(absl::StrCat(recording.problem(), " was recorded on another class of device (",
                                                     recording.device_model(), ") or under another policy than ",
                                                     first.problem(), " (", first.device_model(), ")"));
    }
    for (const v1::Family& family : recording.families()) {
      const auto [it, fresh] = sources.try_emplace(family.name(), family.source_hash());
      if (it->second == family.source_hash()) continue;
      return absl::InvalidArgumentError(absl::StrCat(recording.problem(), " was recorded with other sources of ",
                                                     family.name(), " than ", first.problem()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PortfolioTimes> TimesOf(const std::vector<v1::Recording>& recordings) {
  PortfolioTimes times;
  std::map<std::string, size_t> numbers;
  std::vector<std::map<size_t, double>> of_problem;
  for (const v1::Recording& recording : recordings) {
    const absl::StatusOr<RecordedSpace> space = SpaceOf(recording);
    if (!space.ok()) return space.status();
    times.problems.push_back(*ParseProblem(recording.problem()));
    times.weights.push_back(1);
    times.best_us.push_back(space->best_us);
    of_problem.emplace_back();
    for (int i = 0; i < recording.rows_size(); ++i) {
      const search::Outcome& outcome = space->outcomes[static_cast<size_t>(i)];
      if (!outcome.ok) continue;
      const auto [it, fresh] = numbers.try_emplace(VariantText(recording, recording.rows(i)), numbers.size());
      if (fresh) times.variants.push_back(it->first);
      of_problem.back()[it->second] = outcome.us;
    }
  }
  for (const auto& known : of_problem) {
    times.us.emplace_back(times.variants.size(), PortfolioTimes::kUnknown);
    for (const auto& [variant, us] : known) times.us.back()[variant] = us;
  }
  return times;
}

PortfolioTimes Without(size_t problem, PortfolioTimes times) {
  const auto at = static_cast<std::ptrdiff_t>(problem);
  times.problems.erase(times.problems.begin() + at);
  times.weights.erase(times.weights.begin() + at);
  times.best_us.erase(times.best_us.begin() + at);
  times.us.erase(times.us.begin() + at);
  return times;
}

std::optional<double> LossOf(const PortfolioTimes& times, size_t problem, size_t variant) {
  if (variant == Portfolio::kNone || times.us[problem][variant] <= PortfolioTimes::kUnknown) return std::nullopt;
  return times.us[problem][variant] / times.best_us[problem] - 1;
}

// With the variant that the most alike of the others has; nullopt where it was not timed here, or failed.
std::optional<double> LossHeldOut(const PortfolioTimes& times, size_t problem, size_t most) {
  const PortfolioTimes others = Without(problem, times);
  const Portfolio portfolio = cli::ChoosePortfolio(others, most);
  size_t nearest = 0;
  for (size_t i = 1; i < others.problems.size(); ++i) {
    if (Unlikeness(others.problems[i], times.problems[problem]) <
        Unlikeness(others.problems[nearest], times.problems[problem])) {
      nearest = i;
    }
  }
  return LossOf(times, problem, portfolio.of_problem[nearest]);
}

std::string LossText(std::optional<double> loss) {
  return loss.has_value() ? absl::StrFormat("%.1f %%", 100 * *loss) : "-";
}

}  // namespace

absl::StatusOr<std::string> TryPortfolio(const std::vector<v1::Recording>& recordings, size_t most) {
  if (absl::Status status = CheckAreOfOne(recordings); !status.ok()) return status;
  const absl::StatusOr<PortfolioTimes> times = TimesOf(recordings);
  if (!times.ok()) return times.status();
  const Portfolio portfolio = cli::ChoosePortfolio(*times, most);
  std::string text = "| variants | mean loss | worst | the last of them |\n|---|---|---|---|\n";
  for (size_t i = 0; i < portfolio.variants.size(); ++i) {
    absl::StrAppend(&text, "| ", i + 1, " | ", LossText(portfolio.mean_loss[i]), " | ",
                    LossText(portfolio.worst_loss[i]), " | ", times->variants[portfolio.variants[i]], " |\n");
  }
  absl::StrAppend(&text, "\n| problem | loss | chosen for the others |\n|---|---|---|\n");
  double sum = 0;
  double worst = 0;
  size_t known = 0;
  for (size_t problem = 0; problem < times->problems.size(); ++problem) {
    const std::optional<double> held_out = LossHeldOut(*times, problem, most);
    absl::StrAppend(&text, "| ", ToText(times->problems[problem]), " | ",
                    LossText(LossOf(*times, problem, portfolio.of_problem[problem])), " | ", LossText(held_out),
                    " |\n");
    if (!held_out.has_value()) continue;
    ++known;
    sum += *held_out;
    worst = std::max(worst, *held_out);
  }
  if (known > 0) {
    absl::StrAppend(&text, "\nChosen for the others, ", known, " of ", times->problems.size(), ": mean ",
                    LossText(sum / static_cast<double>(known)), ", worst ", LossText(worst), "\n");
  }
  return text;
}

}  // namespace attune::replay
