#include "client/cli/loop_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/cli/history_times.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/profile_text.h"
#include "client/cli/submission_text.h"
#include "client/cli/text.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

std::string ChangeText(const Iteration& iteration) {
  return iteration.against.empty() ? "-" : absl::StrCat("+", iteration.diff.added, " -", iteration.diff.removed);
}

std::string SpeedupText(const v1::SubmitResult::Row& row) { return row.speedup() > 0 ? Speedup(row.speedup()) : "-"; }

// What was measured of a trial since it was tried; none of one that is no longer stored.
absl::Status AddReports(Client& client, v1::Submission& submission) {
  for (v1::SubmitResult::Row& row : *submission.mutable_result()->mutable_rows()) {
    if (row.trial().name().empty()) continue;
    absl::StatusOr<v1::Trial> trial = client.GetTrial(row.trial().name());
    if (absl::IsNotFound(trial.status())) continue;
    if (!trial.ok()) return trial.status();
    if (trial->has_profile()) *row.mutable_trial()->mutable_profile() = std::move(*trial->mutable_profile());
    if (trial->has_sanitizing()) *row.mutable_trial()->mutable_sanitizing() = std::move(*trial->mutable_sanitizing());
  }
  return absl::OkStatus();
}

std::string CountersOf(const v1::SubmitResult::Row& row) {
  const std::string text = CountersText(row.trial().profile());
  return text.empty() ? "-" : text;
}

// Of each problem; what was not timed counts for nothing.
std::map<std::string, PlotScale> ScalesOf(const std::vector<Iteration>& iterations) {
  std::map<std::string, PlotScale> scales;
  for (const Iteration& iteration : iterations) {
    for (const v1::SubmitResult::Row& row : iteration.submission.result().rows()) {
      PlotScale& scale = scales[row.problem()];
      if (row.trial().timing().median_us() > 0) scale.Add(row.trial().timing());
    }
  }
  return scales;
}

std::string PlotOf(const v1::SubmitResult::Row& row, const PlotScale& scale) {
  if (row.trial().timing().median_us() <= 0) return "";
  return PlotLine(row.trial().timing(), scale.low, scale.high, kPlotWidth);
}

bool AnyProfile(const std::vector<Iteration>& iterations) {
  return std::any_of(iterations.begin(), iterations.end(), [](const Iteration& iteration) {
    const auto& rows = iteration.submission.result().rows();
    return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.trial().has_profile(); });
  });
}

std::string InCell(absl::string_view text) {
  return absl::StrReplaceAll(Printable(text), {{"|", "\\|"}, {"<", "&lt;"}});
}

// Longer than any run of backticks in it.
std::string FenceFor(absl::string_view text) {
  size_t longest = 2;
  size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

// Of each problem a line an iteration that was timed; of one with a single time nothing.
std::string PlotMarkdown(const std::vector<Iteration>& iterations) {
  std::string text;
  for (const auto& [problem, scale] : ScalesOf(iterations)) {
    if (!(scale.high > scale.low)) continue;
    absl::StrAppend(&text, "\n## Times of ", InCell(problem), "\n\n```\n",
                    absl::StrFormat("%9s  %9s  %s\n", "iteration", "time us", scale.ToText()));
    for (const Iteration& iteration : iterations) {
      for (const v1::SubmitResult::Row& row : iteration.submission.result().rows()) {
        if (row.problem() != problem || row.trial().timing().median_us() <= 0) continue;
        absl::StrAppend(
            &text, absl::StrFormat("%9d  %9s  %s  %s\n", iteration.submission.iteration(),
                                   Micros(row.trial().timing().median_us()), PlotOf(row, scale), Word(row.decision())));
      }
    }
    absl::StrAppend(&text, "```\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<Iteration>> IterationsOf(Client& client, const std::string& loop,
                                                    const std::string& principal) {
  v1::ListSubmissionsRequest request;
  request.set_loop(loop);
  request.set_principal(principal);
  std::vector<std::string> names;
  const absl::Status listed =
      ForEach(client, &Client::ListSubmissions, &v1::ListSubmissionsResponse::submissions, request, kAll,
              [&](const v1::Submission& submission) { names.push_back(submission.name()); });
  if (!listed.ok()) return listed;
  if (names.empty()) return absl::NotFoundError(absl::StrCat("loop ", Quoted(loop), " has no submissions"));
  std::reverse(names.begin(), names.end());
  std::vector<Iteration> iterations;
  size_t kept = names.size();  // the last
  for (const std::string& name : names) {
    absl::StatusOr<v1::Submission> submission = client.GetSubmission(name);
    if (!submission.ok()) return submission.status();
    if (absl::Status added = AddReports(client, *submission); !added.ok()) return added;
    Iteration iteration{*std::move(submission), "", {}};
    if (kept < iterations.size()) {
      iteration.against = iterations[kept].submission.name();
      iteration.diff = DiffOf(iterations[kept].submission.files(), iteration.submission.files());
    }
    if (iteration.submission.result().decision() == v1::SubmitResult::DECISION_KEEP) kept = iterations.size();
    iterations.push_back(std::move(iteration));
  }
  return iterations;
}

Json IterationJson(const Iteration& iteration) {
  Json json = SubmissionJson(iteration.submission);
  json["type"] = "iteration";
  json["diff_against"] = TextOrNull(iteration.against);
  json["diff"] = iteration.against.empty() ? Json() : Json(iteration.diff.text);
  json["lines_added"] = iteration.diff.added;
  json["lines_removed"] = iteration.diff.removed;
  return json;
}

std::string LoopMarkdown(const std::string& loop, const std::vector<Iteration>& iterations) {
  std::string text =
      absl::StrCat("# Loop ", InCell(loop),
                   "\n\n| iteration | hypothesis | problem | time us | speed-up | "
                   "change | counters | verdict | reason |\n|---:|---|---|---:|---:|---:|---|---|---|\n");
  for (const Iteration& iteration : iterations) {
    const v1::Submission& submission = iteration.submission;
    for (const v1::SubmitResult::Row& row : submission.result().rows()) {
      absl::StrAppend(&text, "| ", submission.iteration(), " | ", InCell(submission.hypothesis()), " | ",
                      InCell(row.problem()), " | ", Micros(row.trial().timing().median_us()), " | ", SpeedupText(row),
                      " | ", ChangeText(iteration), " | ", CountersOf(row), " | ", Word(submission.result().decision()),
                      " | ", InCell(row.reason()), " |\n");
    }
  }
  absl::StrAppend(&text, PlotMarkdown(iterations));
  for (const Iteration& iteration : iterations) {
    if (iteration.diff.text.empty()) continue;
    const std::string fence = FenceFor(iteration.diff.text);
    absl::StrAppend(&text, "\n## Iteration ", iteration.submission.iteration(), ", ", iteration.submission.name(),
                    " against ", iteration.against, "\n\n", fence, "diff\n", iteration.diff.text, fence, "\n");
  }
  return text;
}

void PrintLoop(Session& session, const std::vector<Iteration>& iterations) {
  std::vector<Column> columns = {{"iteration", kNumber}, {"submission", kText, 3}, {"hypothesis", kFlexible},
                                 {"problem", kName},     {"time us", kNumber},     {"speed-up", kNumber},
                                 {"base", kText, 2},     {"change", kNumber, 1},   {"verdict"}};
  const std::map<std::string, PlotScale> scales = ScalesOf(iterations);
  const bool one_scale = scales.size() == 1 && scales.begin()->second.high > 0;
  columns.push_back({one_scale ? scales.begin()->second.ToText() : "fastest .. slowest", kText, 5});
  const bool profiled = AnyProfile(iterations);
  if (profiled) columns.push_back({"counters", kText, 4});
  Table table(std::move(columns));
  for (const Iteration& iteration : iterations) {
    const v1::Submission& submission = iteration.submission;
    const bool keep = submission.result().decision() == v1::SubmitResult::DECISION_KEEP;
    for (const v1::SubmitResult::Row& row : submission.result().rows()) {
      std::vector<Cell> cells = {absl::StrCat(submission.iteration()),
                                 submission.name(),
                                 submission.hypothesis(),
                                 row.problem(),
                                 Micros(row.trial().timing().median_us()),
                                 SpeedupText(row),
                                 BaseText(row),
                                 ChangeText(iteration),
                                 {Word(submission.result().decision()), keep ? Color::kGreen : Color::kRed},
                                 PlotOf(row, scales.at(row.problem()))};
      if (profiled) cells.emplace_back(CountersOf(row));
      table.Row(std::move(cells));
    }
  }
  session.Print(table);
}

}  // namespace attune::cli
