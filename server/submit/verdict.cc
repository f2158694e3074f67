#include "server/submit/verdict.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "proto/attune/problem.h"
#include "server/submit/gates.h"
#include "server/trials/trial.h"

namespace attune::submit {
namespace {

std::string Figures(const v1::Timing& timing) {
  return absl::StrFormat("%.2f us [%.2f, %.2f]", timing.median_us(), timing.low_us(), timing.high_us());
}

// Of a detail of several lines: what a reason, which is a sentence, says of it.
absl::string_view FirstLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('\n')));
}

// "COMPILE_ERROR: mine.cu:12: identifier "x" is undefined (and 2 more)"
std::string WhatIsWrong(const v1::SubmitResult::Row& row) {
  const v1::Trial& trial = row.trial();
  std::string text(Word(trial.verdict()));
  if (row.diagnostics().empty()) {
    if (!trial.detail().empty()) absl::StrAppend(&text, ": ", FirstLine(trial.detail()));
    return text;
  }
  const v1::Diagnostic& first = row.diagnostics(0);
  absl::StrAppend(&text, ": ", first.path(), first.line() > 0 ? absl::StrCat(":", first.line()) : "",
                  first.path().empty() ? "" : ": ", FirstLine(first.text()));
  if (row.diagnostics_size() > 1) absl::StrAppend(&text, " (and ", row.diagnostics_size() - 1, " more)");
  return text;
}

std::string WhyNoDuel(const v1::SubmitResult::Row& row) {
  if (row.base().empty()) return "there is no base to compare with";
  const v1::Trial& base = row.base_trial();
  return absl::StrCat("its base, ", row.base(), ", cannot be compared with: ", Word(base.verdict()),
                      base.detail().empty() ? "" : ": ", FirstLine(base.detail()));
}

void Say(v1::SubmitResult::Decision decision, std::string reason, v1::SubmitResult::Row& row) {
  row.set_decision(decision);
  row.set_reason(std::move(reason));
}

// Whether it stands against the whole submission.
bool Fails(const v1::SubmitResult::Row& row) {
  const std::vector<v1::GateFinding> gates(row.gates().begin(), row.gates().end());
  return row.decision() != v1::SubmitResult::DECISION_KEEP && (!trials::Timed(row.trial()) || Reverts(gates));
}

}  // namespace

void Decide(const v1::Device& device, const std::optional<measure::Gain>& gain, v1::SubmitResult::Row& row) {
  constexpr auto kKeep = v1::SubmitResult::DECISION_KEEP;
  constexpr auto kRevert = v1::SubmitResult::DECISION_REVERT;
  const v1::Trial& trial = row.trial();
  const bool duel = gain.has_value() && trials::Timed(trial) && trials::Timed(row.base_trial());
  if (duel) row.set_speedup(1 + gain->middle);
  const std::vector<v1::GateFinding> gates = GatesOf(trial, device, row.speedup());
  row.mutable_gates()->Assign(gates.begin(), gates.end());
  if (!trials::Timed(trial)) {
    return Say(kRevert, WhatIsWrong(row), row);
  }
  if (Reverts(gates)) return Say(kRevert, gates.front().text(), row);
  if (trial.timing().contended() || (duel && row.base_trial().timing().contended())) {
    return Say(kRevert, "another process was on the device while it was timed; submit it again", row);
  }
  const std::string own = Figures(trial.timing());
  if (!duel) return Say(kKeep, absl::StrCat("right, ", own, "; ", WhyNoDuel(row)), row);
  const std::string against = absl::StrFormat("%s against the base's %s, %.3f times as fast", own,
                                              Figures(row.base_trial().timing()), row.speedup());
  if (gain->answer == measure::Answer::kFaster) return Say(kKeep, against, row);
  Say(kRevert,
      absl::StrFormat(
          "no gain: %s; in rounds of both it gains %.1f %% to %.1f %%, and more than %.1f %% for certain is asked",
          against, 100 * gain->low, 100 * gain->high, 100 * measure::PairedRounds::kLeastGain),
      row);
}

void DecideAll(v1::SubmitResult& result) {
  const v1::SubmitResult::Row* decisive = nullptr;
  int kept = 0;
  for (const v1::SubmitResult::Row& row : result.rows()) {
    kept += row.decision() == v1::SubmitResult::DECISION_KEEP;
    if (decisive == nullptr && Fails(row)) decisive = &row;
  }
  const auto say = [&](v1::SubmitResult::Decision decision, const v1::SubmitResult::Row& row) {
    result.set_decision(decision);
    const std::string where = result.rows_size() > 1 ? absl::StrCat(row.problem(), ": ") : "";
    result.set_reason(absl::StrCat(where, row.reason()));
  };
  if (decisive != nullptr) return say(v1::SubmitResult::DECISION_REVERT, *decisive);
  if (kept == 0) return say(v1::SubmitResult::DECISION_REVERT, result.rows(0));
  const auto best = std::max_element(result.rows().begin(), result.rows().end(), [](const auto& a, const auto& b) {
    return std::pair(a.decision() == v1::SubmitResult::DECISION_KEEP, a.speedup()) <
           std::pair(b.decision() == v1::SubmitResult::DECISION_KEEP, b.speedup());
  });
  say(v1::SubmitResult::DECISION_KEEP, *best);
  if (result.rows_size() > 1) {
    result.set_reason(absl::StrCat(kept, " of ", result.rows_size(), " problems are faster; ", result.reason()));
  }
}

}  // namespace attune::submit
