#include "client/cli/operation_result.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/energy_text.h"
#include "client/cli/json.h"
#include "client/cli/profile_text.h"
#include "client/cli/submission_text.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"
#include "proto/attune/device_list.h"

namespace attune::cli {
namespace {

// Why the best of the trials is not the winner: another one was faster, or better founded, when they were timed in
// turn. Empty where it is.
std::string WhyNotTheBest(const v1::Trial& best, const v1::TuneResult& result) {
  if (!result.has_winner() || best.name().empty() || best.variant().text() == result.winner().variant().text()) {
    return "";
  }
  const auto again = std::find_if(result.play_off().begin(), result.play_off().end(), [&](const v1::Trial& trial) {
    return trial.variant().text() == best.variant().text();
  });
  const std::string its =
      absl::StrCat(VariantText(best.variant()), ", at ", Micros(best.timing().median_us()), " us the fastest trial, ");
  return absl::StrCat("in the play-off the winner took ", Micros(result.winner().timing().median_us()), " us; ", its,
                      again == result.play_off().end()
                          ? "was not in it"
                          : absl::StrCat("took ", Micros(again->timing().median_us()), " us there"));
}

// "Trials: 12 on cuda:0, 11 on cuda:1"; empty where one card ran all.
std::string TrialsByCard(const v1::OperationProgress& progress) {
  if (progress.cards().empty()) return "";
  return absl::StrCat("Trials: ", absl::StrJoin(progress.cards(), ", ", [](std::string* out, const auto& card) {
                        absl::StrAppend(out, card.trials(), " on ", card.device_id());
                      }));
}

ExitCode PrintTuning(Session& session, const v1::Operation& operation) {
  const v1::TuneResult& result = operation.tune();
  const bool served = result.has_incumbent();
  const ExitCode code = served || result.has_winner() ? ExitCode::kOk : ExitCode::kInfeasible;
  if (session.json()) {
    session.Emit(TuningJson(operation));
    return code;
  }
  if (result.play_off_size() > 0) {
    session.Print("Play-off, by time; compared round by round:");
    Table table = TrialTable(TrialsOf::kOneProblem);
    for (const v1::Trial& trial : result.play_off()) AddTrial(trial, TrialsOf::kOneProblem, &table);
    session.Print(table);
    if (const std::optional<Table> energies = EnergyTable(result)) session.Print(*energies);
    session.Print("");
  }
  if (result.has_winner()) session.Print(TrialFields(result.winner(), operation.end_time(), "play-off "));
  if (const std::string why = WhyNotTheBest(operation.progress().best(), result); !why.empty()) session.Print(why);
  session.Print(absl::StrCat(result.promoted() ? "promoted: " : "not promoted: ", result.decision()));
  if (const std::string thriftier = LeastEnergy(result); !thriftier.empty()) session.Print(thriftier);
  if (const std::string cards = TrialsByCard(operation.progress()); !cards.empty()) session.Print(cards);
  if (result.has_claim()) session.Print(absl::StrCat("Search: ", ClaimText(result.claim())));
  if (result.floor_us() > 0) {
    session.Print(absl::StrCat("Launch overhead on this device: ", Micros(result.floor_us()), " us"));
  }
  if (result.anchor_moved() > 0) {
    session.Note(absl::StrFormat(
        "attune: the device's times moved by %.1f %% while the trials ran; what was given up early may deserve another "
        "tuning",
        100 * result.anchor_moved()));
  }
  if (code == ExitCode::kInfeasible) session.Note("attune: no variant is OK; see attune trials, column verdict");
  return code;
}

ExitCode PrintEvaluation(Session& session, const v1::Operation& operation) {
  const v1::EvaluateResult& result = operation.evaluate();
  const bool keep = result.decision() != v1::EvaluateResult::DECISION_REVERT;
  if (session.json()) {
    session.Emit(EvaluationJson(operation));
  } else {
    Table table = TrialTable(TrialsOf::kOneProblem);
    AddTrial(result.trial(), TrialsOf::kOneProblem, &table);
    if (result.has_incumbent()) AddTrial(result.incumbent(), TrialsOf::kOneProblem, &table);
    session.Print(table);
    session.Print("");
    StyledLine line;
    line.Add(Word(result.decision()), keep ? Color::kGreen : Color::kRed);
    if (result.speedup() > 0) line.Add(absl::StrCat("  ", Speedup(result.speedup()), " the incumbent"));
    session.Print(line.Add("  ").Add(result.reason()));
  }
  return keep ? ExitCode::kOk : ExitCode::kRegression;
}

ExitCode PrintSubmission(Session& session, const v1::SubmitResult& result) {
  if (session.json()) {
    session.Emit(SubmitResultJson(result));
  } else {
    PrintSubmitResult(session, result);
  }
  return result.decision() == v1::SubmitResult::DECISION_KEEP ? ExitCode::kOk : ExitCode::kRegression;
}

ExitCode PrintProfiled(Session& session, const v1::ProfileResult& result) {
  if (session.json()) {
    session.Emit(ProfileResultJson(result));
    return ExitCode::kOk;
  }
  PrintProfile(session, result.trial().profile());
  session.Print("");
  session.Print(
      absl::StrCat(result.trial().name(), ", ", VariantText(result.trial().variant()), ": bound by ", result.bound()));
  return ExitCode::kOk;
}

ExitCode PrintSanitized(Session& session, const v1::SanitizeResult& result) {
  if (session.json()) {
    session.Emit(SanitizeResultJson(result));
  } else {
    PrintSanitizing(session, result.trial().sanitizing());
    session.Print("");
    session.Print(
        absl::StrCat(result.trial().name(), ", ", VariantText(result.trial().variant()), ": ", result.reason()));
  }
  return result.clean() ? ExitCode::kOk : ExitCode::kRegression;
}

Color ColorOf(v1::SweepReport::Outcome outcome) {
  switch (outcome) {
    case v1::SweepReport::OUTCOME_NEW:
    case v1::SweepReport::OUTCOME_FASTER:
      return Color::kGreen;
    case v1::SweepReport::OUTCOME_SLOWER:
    case v1::SweepReport::OUTCOME_FAILED:
      return Color::kRed;
    case v1::SweepReport::OUTCOME_AMBIGUOUS:
    case v1::SweepReport::OUTCOME_SKIPPED:
    case v1::SweepReport::OUTCOME_MOVED:
      return Color::kYellow;
    default:
      return Color::kPlain;
  }
}

int64_t CountOf(v1::SweepReport::Outcome outcome, const v1::SweepReport& report) {
  return std::count_if(report.rows().begin(), report.rows().end(),
                       [outcome](const auto& row) { return row.outcome() == outcome; });
}

// As the report in Markdown has it.
std::string Change(const v1::SweepReport::Row& row) {
  return row.before_us() > 0 && row.after_us() > 0
             ? absl::StrFormat("%+.1f %%", (row.after_us() / row.before_us() - 1) * 100)
             : "";
}

ExitCode PrintSweep(Session& session, const v1::SweepReport& report) {
  const int64_t failed = CountOf(v1::SweepReport::OUTCOME_FAILED, report);
  if (session.json()) {
    session.Emit(SweepJson(report));
  } else {
    const bool several_cards = NamesSeveralCards(report.device_id());
    std::vector<Column> columns = {{"problem", kName},       {"outcome"},          {"before us", kNumber},
                                   {"after us", kNumber},    {"change", kNumber},  {"trials", kNumber, 2},
                                   {"variant", kVariant, 1}, {"detail", kFlexible}};
    if (several_cards) columns.insert(columns.begin() + 1, {"device"});
    Table table(columns);
    for (const auto& row : report.rows()) {
      std::vector<Cell> cells = {row.problem(),
                                 {Word(row.outcome()), ColorOf(row.outcome())},
                                 Micros(row.before_us()),
                                 Micros(row.after_us()),
                                 Change(row),
                                 absl::StrCat(row.trials()),
                                 row.variant(),
                                 row.detail()};
      if (several_cards) cells.insert(cells.begin() + 1, row.device_id());
      table.Row(std::move(cells));
    }
    session.Print(table);
    session.Print("");
    for (const auto& row : report.rows()) {  // the table may have had no room for why
      if (row.outcome() == v1::SweepReport::OUTCOME_FAILED) {
        session.Print(absl::StrCat(row.problem(), " failed: ", OneLine(row.detail())));
      }
    }
    session.Print(absl::StrCat(Counted(report.rows_size(), "problem"), " on ", report.device_id(), ": ",
                               Counted(report.trials(), "trial"), ", ", Counted(report.compiles(), "compile"),
                               failed > 0 ? absl::StrCat(", ", failed, " FAILED; ") : "; ",
                               report.regression() ? "REGRESSION" : "no regression"));
  }
  const int64_t skipped = CountOf(v1::SweepReport::OUTCOME_SKIPPED, report);
  if (skipped > 0) {
    session.Note(absl::StrCat("attune: ", skipped, " of ", Counted(report.rows_size(), "problem"),
                              " SKIPPED: the sweep's total time was spent; raise budget.total_time or sweep fewer"));
  }
  if (report.regression()) return failed > 0 ? ExitCode::kRegressionAndFailures : ExitCode::kRegression;
  if (failed > 0) return ExitCode::kOperationFailed;
  return 2 * skipped > report.rows_size() ? ExitCode::kOutOfTime : ExitCode::kOk;
}

std::string Name(const v1::Operation& operation) {
  return operation.title().empty() ? operation.name() : absl::StrCat(operation.title(), " (", operation.name(), ")");
}

}  // namespace

absl::StatusOr<ExitCode> PrintResult(Session& session, const v1::Operation& operation) {
  if (operation.has_error() || operation.state() == v1::Operation::STATE_CANCELLED) {
    if (session.json()) session.Emit(OperationJson(operation));
    // A sweep that failed may have come to a part of its report, or to one in which nothing has a result.
    const bool reports = operation.has_error() && operation.sweep().rows_size() > 0;
    if (reports) PrintSweep(session, operation.sweep());
    session.Note(operation.has_error()
                     ? absl::StrCat("attune: ", Name(operation), " failed: ", OneLine(operation.error().message()))
                     : absl::StrCat("attune: ", Name(operation), " was cancelled"));
    return reports && operation.sweep().regression() ? ExitCode::kRegressionAndFailures : ExitCode::kOperationFailed;
  }
  switch (operation.response_case()) {
    case v1::Operation::kTune:
      return PrintTuning(session, operation);
    case v1::Operation::kEvaluate:
      return PrintEvaluation(session, operation);
    case v1::Operation::kSubmit:
      return PrintSubmission(session, operation.submit());
    case v1::Operation::kProfile:
      return PrintProfiled(session, operation.profile());
    case v1::Operation::kSanitize:
      return PrintSanitized(session, operation.sanitize());
    case v1::Operation::kSweep:
      return PrintSweep(session, operation.sweep());
    default:
      return absl::InternalError(absl::StrCat(Name(operation), " is done but has no result"));
  }
}

}  // namespace attune::cli
