#include "server/sweep/sweep_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "proto/attune/device_list.h"
#include "proto/attune/quote.h"

namespace attune::sweep {
namespace {

std::string Us(double us) { return us > 0 ? absl::StrFormat("%.4g", us) : "-"; }

std::string Change(const v1::SweepReport::Row& row) {
  if (row.before_us() <= 0 || row.after_us() <= 0) return "-";
  return absl::StrFormat("%+.1f %%", (row.after_us() / row.before_us() - 1) * 100);
}

// One cell: a bar or a line break would end it, and what others wrote may hold control characters.
std::string Cell(absl::string_view text) { return Printable(absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}})); }

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

std::string WordsOfMissed(const v1::SweepReport& report) {
  std::vector<std::string> words;
  const auto add = [&](v1::SweepReport::Outcome outcome, absl::string_view why) {
    const auto count = std::count_if(report.rows().begin(), report.rows().end(),
                                     [outcome](const auto& row) { return row.outcome() == outcome; });
    if (count == 0) return;
    words.push_back(absl::StrCat(count, " of ", Counted(report.rows_size(), "problem"), " ", Word(outcome), why));
  };
  add(v1::SweepReport::OUTCOME_FAILED, "");
  add(v1::SweepReport::OUTCOME_SKIPPED,
      ": the sweep's total time was spent; raise budget.total_time or sweep fewer problems");
  return absl::StrJoin(words, "; ");
}

absl::Status ErrorOf(const v1::SweepReport& report) {
  const v1::SweepReport::Row* failed = nullptr;
  for (const v1::SweepReport::Row& row : report.rows()) {
    if (row.outcome() == v1::SweepReport::OUTCOME_SKIPPED) continue;
    if (row.outcome() != v1::SweepReport::OUTCOME_FAILED) return absl::OkStatus();
    if (failed == nullptr) failed = &row;
  }
  if (failed == nullptr) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(WordsOfMissed(report), "; the first, ", failed->problem(), ": ", failed->detail()));
}

absl::string_view Word(v1::SweepReport::Outcome outcome) {
  switch (outcome) {
    case v1::SweepReport::OUTCOME_NEW:
      return "NEW";
    case v1::SweepReport::OUTCOME_FASTER:
      return "FASTER";
    case v1::SweepReport::OUTCOME_SAME:
      return "SAME";
    case v1::SweepReport::OUTCOME_SLOWER:
      return "SLOWER";
    case v1::SweepReport::OUTCOME_AMBIGUOUS:
      return "AMBIGUOUS";
    case v1::SweepReport::OUTCOME_FAILED:
      return "FAILED";
    case v1::SweepReport::OUTCOME_SKIPPED:
      return "SKIPPED";
    case v1::SweepReport::OUTCOME_MOVED:
      return "MOVED";
    default:
      return "UNSPECIFIED";
  }
}

void Complete(v1::SweepReport& report) {
  int64_t trials = 0;
  int64_t compiles = 0;
  std::map<v1::SweepReport::Outcome, int> counts;
  std::string table;
  const bool several_cards = NamesSeveralCards(report.device_id());
  const bool sanitized = std::any_of(report.rows().begin(), report.rows().end(),
                                     [](const auto& row) { return !row.sanitizers().empty(); });
  for (const v1::SweepReport::Row& row : report.rows()) {
    trials += row.trials();
    compiles += row.compiles();
    ++counts[row.outcome()];
    absl::StrAppend(&table, "| ", row.problem(), " | ", Word(row.outcome()), " | ", Us(row.before_us()), " | ",
                    Us(row.after_us()), " | ", Change(row), " | ", Cell(row.variant()), " | ", row.trials(), " | ",
                    row.compiles(), " | ", several_cards ? absl::StrCat(row.device_id(), " | ") : "",
                    sanitized ? absl::StrCat(row.sanitizers().empty() ? "-" : Cell(row.sanitizers()), " | ") : "",
                    Cell(row.detail()), " |\n");
  }
  report.set_trials(trials);
  report.set_compiles(compiles);
  report.set_regression(counts.contains(v1::SweepReport::OUTCOME_SLOWER));
  const std::string summary =
      absl::StrJoin(counts, ", ", [](std::string* out, const std::pair<const v1::SweepReport::Outcome, int>& count) {
        absl::StrAppend(out, count.second, " ", Word(count.first));
      });
  const std::string missed = WordsOfMissed(report);
  report.set_markdown(
      absl::StrCat("# ", report.title().empty() ? "Sweep" : Printable(report.title()), "\n\n",
                   Counted(report.rows_size(), "problem"), " on ", report.device_id(), ": ",
                   summary.empty() ? "none done" : summary, ". ", Counted(trials, "trial"), ", ",
                   Counted(compiles, "compile"), ".\n\n", missed.empty() ? "" : absl::StrCat("**", missed, ".**\n\n"),
                   "| problem | outcome | before, us | after, us | change | variant | trials | compiles | ",
                   several_cards ? "device | " : "", sanitized ? "sanitizers | " : "",
                   "detail |\n|---|---|---:|---:|---:|---|---:|---:|", several_cards ? "---|" : "",
                   sanitized ? "---|" : "", "---|\n", table));
}

}  // namespace attune::sweep
