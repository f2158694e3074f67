#include "client/replay/nearest.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/replay/recorded_space.h"
#include "server/search/feature_columns.h"

namespace attune::replay {
namespace {

using End = HeldOutAnswer::End;

// Two timings of one variant differ by that much.
constexpr double kNoise = 0.01;

HeldOutAnswer Judge(const std::optional<RuleAnswer>& answer, const TunedProblem& truth) {
  HeldOutAnswer held_out;
  if (!answer.has_value()) return held_out;
  const auto it = truth.choices.by_text.find(answer->variant.ToText());
  if (it == truth.choices.by_text.end()) {
    held_out.end = End::kUnrecorded;
    return held_out;
  }
  const double us = truth.us[it->second];
  if (us <= 0) {
    held_out.end = End::kFailed;
    return held_out;
  }
  held_out.end = End::kTimed;
  held_out.regret = us / truth.best_us() - 1;
  if (answer->predicted_us > 0) held_out.of_time = answer->predicted_us / us;
  return held_out;
}

std::string Tenths(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

// By the nearest rank; as text.
std::string QuantileOf(const std::vector<double>& sorted, double quantile) {
  if (sorted.empty()) return "-";
  const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(sorted.size())));
  return Tenths(sorted[std::max<size_t>(rank, 1) - 1]);
}

struct Summary {
  size_t asked = 0, answered = 0, unrecorded = 0, failed = 0;
  std::vector<double> regrets;   // sorted
  std::vector<double> slowdown;  // against the first rule, where both have a time; sorted
  size_t not_slower = 0;         // of these
  size_t predicted = 0, within_two = 0;
};

Summary SummaryOf(const AnswerTable& table, size_t rule) {
  Summary summary;
  for (const HeldOutRow& row : table.rows) {
    const HeldOutAnswer& answer = row.answers[rule];
    ++summary.asked;
    if (answer.end != End::kNone) ++summary.answered;
    if (answer.end == End::kUnrecorded) ++summary.unrecorded;
    if (answer.end == End::kFailed) ++summary.failed;
    if (answer.end != End::kTimed) continue;
    summary.regrets.push_back(answer.regret);
    if (answer.of_time.has_value()) {
      ++summary.predicted;
      if (*answer.of_time >= 0.5 && *answer.of_time <= 2) ++summary.within_two;
    }
    const HeldOutAnswer& first = row.answers.front();
    if (first.end != End::kTimed) continue;
    summary.slowdown.push_back((1 + answer.regret) / (1 + first.regret) - 1);
    if (summary.slowdown.back() <= kNoise) ++summary.not_slower;
  }
  std::sort(summary.regrets.begin(), summary.regrets.end());
  std::sort(summary.slowdown.begin(), summary.slowdown.end());
  return summary;
}

std::string Share(size_t some, size_t all) {
  return all == 0 ? "-" : absl::StrFormat("%.0f %%", 100.0 * static_cast<double>(some) / static_cast<double>(all));
}

std::string TextOf(const HeldOutAnswer& answer) {
  switch (answer.end) {
    case End::kNone:
      return "-";
    case End::kUnrecorded:
      return "unknown";
    case End::kFailed:
      return "failed";
    case End::kTimed:
      return Tenths(answer.regret);
  }
  return "";
}

absl::StatusOr<std::vector<TunedProblem>> TunedProblemsOf(const std::vector<v1::Recording>& recordings,
                                                          const Families& families,
                                                          const search::FeatureColumns& columns,
                                                          const attune::v1::Device& device) {
  std::vector<TunedProblem> problems;
  for (const v1::Recording& recording : recordings) {
    absl::StatusOr<TunedProblem> problem = TunedProblemOf(recording, families, columns, device);
    if (!problem.ok()) return problem.status();
    problems.push_back(*std::move(problem));
  }
  return problems;
}

std::string Section(absl::string_view title, const AnswerTable& table) {
  return absl::StrCat(title, "\n\n", Markdown(table), "\n", MarkdownOfRows(table));
}

}  // namespace

std::vector<std::unique_ptr<AnswerRule>> EveryRule(const Families& families, const attune::v1::Device& device) {
  std::vector<std::unique_ptr<AnswerRule>> rules;
  rules.push_back(HeuristicRule(families, device));
  rules.push_back(NearestRule(families, device));
  rules.push_back(ServedRule(families, device));
  rules.push_back(ShippedRule(families, device));
  rules.push_back(NeighboursMeanRule());
  const auto model = std::make_shared<SharedModel>(families, device);
  for (Among among : {Among::kNearWinners, Among::kAll}) rules.push_back(ModelRule(among, model, device));
  rules.push_back(ForecastRule(model, families, device));
  return rules;
}

AnswerTable HoldOut(const std::vector<TunedProblem>& problems, const std::vector<Fold>& folds,
                    const std::vector<std::unique_ptr<AnswerRule>>& rules) {
  AnswerTable table;
  for (const auto& rule : rules) table.rules.push_back(rule->name());
  for (const Fold& fold : folds) {
    const std::set<size_t> held_out(fold.held_out.begin(), fold.held_out.end());
    std::vector<const TunedProblem*> others;
    for (size_t i = 0; i < problems.size(); ++i) {
      if (!held_out.contains(i)) others.push_back(&problems[i]);
    }
    for (const auto& rule : rules) rule->Learn(others);
    for (size_t i : fold.held_out) {
      HeldOutRow row = {fold.name, ToText(problems[i].choices.problem), {}};
      for (const auto& rule : rules) row.answers.push_back(Judge(rule->Answer(problems[i].choices), problems[i]));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::string Markdown(const AnswerTable& table) {
  std::string text = absl::StrCat(
      "| rule | asked | answered | unknown | failed | regret, median | 95th | worst | not slower than ",
      table.rules.front(), " | worst against it | time within 2x |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (size_t rule = 0; rule < table.rules.size(); ++rule) {
    const Summary summary = SummaryOf(table, rule);
    absl::StrAppendFormat(&text, "| %s | %d | %s | %d | %d | %s | %s | %s | %s | %s | %s |\n", table.rules[rule],
                          summary.asked, Share(summary.answered, summary.asked), summary.unrecorded, summary.failed,
                          QuantileOf(summary.regrets, 0.5), QuantileOf(summary.regrets, 0.95),
                          QuantileOf(summary.regrets, 1), Share(summary.not_slower, summary.slowdown.size()),
                          QuantileOf(summary.slowdown, 1), Share(summary.within_two, summary.predicted));
  }
  return text;
}

std::string MarkdownOfRows(const AnswerTable& table) {
  const bool named =
      std::any_of(table.rows.begin(), table.rows.end(), [](const HeldOutRow& row) { return row.fold != row.problem; });
  std::string text = absl::StrCat("|", named ? " held out |" : "", " problem |");
  for (const std::string& rule : table.rules) absl::StrAppend(&text, " ", rule, " |");
  absl::StrAppend(&text, "\n|---|", named ? "---|" : "");
  for (size_t i = 0; i < table.rules.size(); ++i) absl::StrAppend(&text, "---|");
  absl::StrAppend(&text, "\n");
  for (const HeldOutRow& row : table.rows) {
    absl::StrAppend(&text, "| ", named ? absl::StrCat(row.fold, " | ") : "", row.problem, " |");
    for (const HeldOutAnswer& answer : row.answers) absl::StrAppend(&text, " ", TextOf(answer), " |");
    absl::StrAppend(&text, "\n");
  }
  return text;
}

AnswerTable AnswerFrom(const std::vector<TunedProblem>& prior, const std::vector<TunedProblem>& problems,
                       const std::vector<std::unique_ptr<AnswerRule>>& rules) {
  AnswerTable table;
  for (const auto& rule : rules) table.rules.push_back(rule->name());
  for (const TunedProblem& asked : problems) {
    std::vector<const TunedProblem*> others;
    for (const TunedProblem& one : prior) {
      if (!(one.choices.problem == asked.choices.problem)) others.push_back(&one);
    }
    if (others.empty()) continue;
    for (const auto& rule : rules) rule->Learn(others);
    const std::string text = ToText(asked.choices.problem);
    HeldOutRow row = {text, text, {}};
    for (const auto& rule : rules) row.answers.push_back(Judge(rule->Answer(asked.choices), asked));
    table.rows.push_back(std::move(row));
  }
  return table;
}

absl::StatusOr<std::string> CompareAnswers(const std::vector<v1::Recording>& recordings,
                                           const std::vector<v1::Recording>& prior, const Families& families,
                                           const attune::v1::Device& device) {
  if (recordings.size() < 2) {
    return absl::InvalidArgumentError("name two recordings or more: one is answered from others");
  }
  for (const auto* some : {&recordings, &prior}) {
    if (absl::Status status = CheckAreOfOne(*some); !status.ok()) return status;
  }
  const Families recorded = Recorded(recordings, families);
  const search::FeatureColumns columns(recorded);
  const absl::StatusOr<std::vector<TunedProblem>> problems = TunedProblemsOf(recordings, recorded, columns, device);
  if (!problems.ok()) return problems.status();
  const absl::StatusOr<std::vector<TunedProblem>> elsewhere = TunedProblemsOf(prior, recorded, columns, device);
  if (!elsewhere.ok()) return elsewhere.status();
  std::vector<Problem> shapes;
  for (const TunedProblem& problem : *problems) shapes.push_back(problem.choices.problem);
  const auto rules = EveryRule(recorded, device);
  std::string text = absl::StrCat(Section("One problem held out", HoldOut(*problems, OneByOne(shapes), rules)), "\n",
                                  Section("One kind held out", HoldOut(*problems, ByKind(shapes), rules)));
  if (prior.empty()) return text;
  return absl::StrCat(text, "\n",
                      Section(absl::StrCat("Nothing tuned here, learned on ", prior.front().device_model()),
                              AnswerFrom(*elsewhere, *problems, rules)));
}

}  // namespace attune::replay
