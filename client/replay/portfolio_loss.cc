#include "client/replay/portfolio_loss.h"

#include <algorithm>
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

// The times as `attune portfolio --tune` has them: what is OK makes candidates, and each has a time, SLOW or not.
struct RecordedTimes {
  std::vector<Problem> problems;
  std::vector<cli::VariantTimes> ok;
  std::vector<cli::VariantTimes> all;

  PortfolioTimes OfCandidates() const {
    return cli::TimesOfCandidates(problems, std::vector<double>(problems.size(), 1), all,
                                  cli::CandidatesOf(ok, cli::kCandidates));
  }
};

absl::StatusOr<RecordedTimes> TimesOf(const std::vector<v1::Recording>& recordings) {
  RecordedTimes recorded;
  for (const v1::Recording& recording : recordings) {
    if (const auto space = SpaceOf(recording); !space.ok()) return space.status();
    recorded.problems.push_back(*ParseProblem(recording.problem()));
    cli::VariantTimes& ok = recorded.ok.emplace_back();
    cli::VariantTimes& all = recorded.all.emplace_back();
    for (const v1::Row& row : recording.rows()) {
      if (!HasTime(row)) continue;
      const std::string variant = VariantText(recording, row);
      all.try_emplace(variant, row.median_us());
      if (row.verdict() == attune::v1::VERDICT_OK) ok.try_emplace(variant, row.median_us());
    }
  }
  return recorded;
}

RecordedTimes Without(size_t problem, RecordedTimes recorded) {
  const auto at = static_cast<std::ptrdiff_t>(problem);
  recorded.problems.erase(recorded.problems.begin() + at);
  recorded.ok.erase(recorded.ok.begin() + at);
  recorded.all.erase(recorded.all.begin() + at);
  return recorded;
}

// nullopt: it has no time of this variant.
std::optional<double> LossOf(const cli::VariantTimes& times, const std::string& variant, double best_us) {
  const auto found = times.find(variant);
  if (found == times.end()) return std::nullopt;
  return found->second / best_us - 1;
}

// With the variant that the most alike of the others has; nullopt where it was not timed here, or failed.
std::optional<double> LossHeldOut(const RecordedTimes& recorded, size_t problem, double best_us, size_t most) {
  const PortfolioTimes others = Without(problem, recorded).OfCandidates();
  const Portfolio portfolio = cli::ChoosePortfolio(others, most);
  size_t nearest = 0;
  for (size_t i = 1; i < others.problems.size(); ++i) {
    if (Unlikeness(others.problems[i], recorded.problems[problem]) <
        Unlikeness(others.problems[nearest], recorded.problems[problem])) {
      nearest = i;
    }
  }
  const size_t variant = portfolio.of_problem[nearest];
  if (variant == Portfolio::kNone) return std::nullopt;
  return LossOf(recorded.all[problem], others.variants[variant], best_us);
}

std::string LossText(std::optional<double> loss) {
  return loss.has_value() ? absl::StrFormat("%.1f %%", 100 * *loss) : "-";
}

}  // namespace

absl::StatusOr<std::string> TryPortfolio(const std::vector<v1::Recording>& recordings, size_t most) {
  if (recordings.size() < 2) {
    return absl::InvalidArgumentError("name two recordings or more: a portfolio is for several problems");
  }
  if (absl::Status status = CheckAreOfOne(recordings); !status.ok()) return status;
  const absl::StatusOr<RecordedTimes> recorded = TimesOf(recordings);
  if (!recorded.ok()) return recorded.status();
  const PortfolioTimes times = recorded->OfCandidates();
  const Portfolio portfolio = cli::ChoosePortfolio(times, most);
  std::string text = "| variants | mean loss | worst | the last of them |\n|---|---|---|---|\n";
  for (size_t i = 0; i < portfolio.variants.size(); ++i) {
    absl::StrAppend(&text, "| ", i + 1, " | ", LossText(portfolio.mean_loss[i]), " | ",
                    LossText(portfolio.worst_loss[i]), " | ", times.variants[portfolio.variants[i]], " |\n");
  }
  absl::StrAppend(&text, "\n| problem | loss | chosen for the others |\n|---|---|---|\n");
  double sum = 0;
  double worst = 0;
  size_t known = 0;
  for (size_t problem = 0; problem < times.problems.size(); ++problem) {
    const std::optional<double> held_out = LossHeldOut(*recorded, problem, times.best_us[problem], most);
    const size_t variant = portfolio.of_problem[problem];
    std::optional<double> loss;
    if (variant != Portfolio::kNone) loss = times.us[problem][variant] / times.best_us[problem] - 1;
    absl::StrAppend(&text, "| ", ToText(times.problems[problem]), " | ", LossText(loss), " | ", LossText(held_out),
                    " |\n");
    if (!held_out.has_value()) continue;
    ++known;
    sum += *held_out;
    worst = std::max(worst, *held_out);
  }
  if (known > 0) {
    absl::StrAppend(&text, "\nChosen for the others, ", known, " of ", times.problems.size(), ": mean ",
                    LossText(sum / static_cast<double>(known)), ", worst ", LossText(worst), "\n");
  }
  return text;
}

}  // namespace attune::replay
