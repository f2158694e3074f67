#include "client/cli/submission_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

// An enum value's name without what its kind has in front, as words.
std::string LowerWord(absl::string_view name, absl::string_view prefix) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(absl::StripPrefix(name, prefix)), {{"_", " "}});
}

Color ColorOfDecision(v1::SubmitResult::Decision decision) {
  return decision == v1::SubmitResult::DECISION_KEEP ? Color::kGreen : Color::kRed;
}

void PrintRemarks(Session& session, const v1::SubmitResult::Row& row, bool several) {
  const std::string where = several ? absl::StrCat(row.problem(), ": ") : "";
  for (const v1::Diagnostic& diagnostic : row.diagnostics()) {
    for (const absl::string_view line : absl::StrSplit(DiagnosticText(diagnostic), '\n')) {
      session.Print(absl::StrCat(where, line));
    }
  }
  for (const v1::GateFinding& gate : row.gates()) {
    StyledLine line;
    line.Add(gate.failed() ? "failed" : "warning", gate.failed() ? Color::kRed : Color::kYellow);
    session.Print(line.Add(absl::StrCat("  ", where, Word(gate.gate()), ": ", gate.text())));
  }
  if (several) session.Print(absl::StrCat(where, row.reason()));
}

}  // namespace

std::string Word(v1::SubmitResult::Decision decision) {
  return std::string(absl::StripPrefix(v1::SubmitResult::Decision_Name(decision), "DECISION_"));
}
std::string Word(v1::Submission::State state) { return LowerWord(v1::Submission::State_Name(state), "STATE_"); }
std::string Word(v1::GateFinding::Gate gate) { return LowerWord(v1::GateFinding::Gate_Name(gate), "GATE_"); }

std::string BaseText(const v1::SubmitResult::Row& row) { return row.base().empty() ? "-" : row.base(); }

std::string DiagnosticText(const v1::Diagnostic& diagnostic) {
  std::string place = diagnostic.path();
  if (diagnostic.line() > 0) absl::StrAppend(&place, ":", diagnostic.line());
  if (diagnostic.column() > 0) absl::StrAppend(&place, ":", diagnostic.column());
  return absl::StrCat(place, place.empty() ? "" : ": ", diagnostic.text());
}

void PrintSubmitResult(Session& session, const v1::SubmitResult& result) {
  Table table({{"problem", kName},
               {"verdict"},
               {"time us", kNumber},
               {"base us", kNumber},
               {"speed-up", kNumber},
               {"base", kText, 2},
               {"tried", kNumber, 3},
               {"variant", kVariant, 1}});
  for (const v1::SubmitResult::Row& row : result.rows()) {
    table.Row({row.problem(),
               {std::string(attune::Word(row.trial().verdict())), ColorOf(row.trial().verdict())},
               Micros(row.trial().timing().median_us()),
               Micros(row.base_trial().timing().median_us()),
               row.speedup() > 0 ? Speedup(row.speedup()) : "-",
               BaseText(row),
               absl::StrCat(row.variants_tried(), "/", row.variants()),
               VariantText(row.trial().variant())});
  }
  session.Print(table);
  session.Print("");
  for (const v1::SubmitResult::Row& row : result.rows()) PrintRemarks(session, row, result.rows_size() > 1);
  StyledLine line;
  line.Add(Word(result.decision()), ColorOfDecision(result.decision()));
  session.Print(line.Add(absl::StrCat("  ", result.submission(), "  ", result.reason())));
}

}  // namespace attune::cli
