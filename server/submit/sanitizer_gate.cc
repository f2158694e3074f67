#include "server/submit/sanitizer_gate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/submit/limits.h"
#include "server/submit/verdict.h"
#include "server/trials/store_wait.h"

namespace attune::submit {
namespace {

constexpr auto kKeep = v1::SubmitResult::DECISION_KEEP;

bool HadTurn(const v1::Submission& submission) {
  return std::any_of(submission.result().rows().begin(), submission.result().rows().end(), [&](const auto& row) {
    return (row.trial().has_sanitizing() && row.trial().sanitizing().operation() == submission.operation()) ||
           std::any_of(row.gates().begin(), row.gates().end(),
                       [](const auto& gate) { return gate.gate() == v1::GateFinding::GATE_SANITIZER; });
  });
}

void Warn(const std::string& text, v1::SubmitResult::Row& row) {
  v1::GateFinding& gate = *row.add_gates();
  gate.set_gate(v1::GateFinding::GATE_SANITIZER);
  gate.set_text(text);
}

// What reverts comes first.
void Revert(const std::string& text, v1::SubmitResult::Row& row) {
  Warn(text, row);
  row.mutable_gates(row.gates_size() - 1)->set_failed(true);
  std::rotate(row.mutable_gates()->begin(), row.mutable_gates()->end() - 1, row.mutable_gates()->end());
  row.set_decision(v1::SubmitResult::DECISION_REVERT);
  row.set_reason(text);
}

void Note(const std::vector<v1::SanitizerRun>& runs, const std::string& operation, v1::SubmitResult::Row& row) {
  v1::Sanitizing& sanitizing = *row.mutable_trial()->mutable_sanitizing();
  sanitizing.mutable_runs()->Assign(runs.begin(), runs.end());
  sanitizing.set_operation(operation);
  SetTimestamp(absl::Now(), sanitizing.mutable_time());
  if (const std::string findings = profile::FindingsOf(runs); !findings.empty()) return Revert(findings, row);
  if (const std::string trouble = profile::TroubleOf(runs); !trouble.empty()) Warn(trouble, row);
}

}  // namespace

absl::StatusOr<bool> IsSanitizersTurn(const v1::SubmitRequest& request, const std::string& principal,
                                      store::Store& store, const trials::Job& job) {
  const int every = request.has_sanitize_every() ? request.sanitize_every() : kSanitizeEvery;
  if (request.loop().empty() || every <= 0) return false;
  if (every == 1) return true;
  const store::SubmissionFilter filter{.principal = principal, .loop = request.loop()};
  const auto before = trials::ReadFor(job, [&] { return store.ListSubmissions(filter, every - 1, ""); });
  if (!before.ok()) return before.status();
  return std::ssize(before->items) == every - 1 && std::none_of(before->items.begin(), before->items.end(), HadTurn);
}

absl::Status Sanitize(const profile::SanitizerMeans& means, trials::DeviceSlot& slot, const trials::Job& job,
                      v1::SubmitResult& result) {
  for (v1::SubmitResult::Row& row : *result.mutable_rows()) {
    if (row.decision() != kKeep) continue;
    trials::DeviceUse use(slot, job.priority, job.stop, job.waiter, job.abort);
    const auto runs = profile::SanitizeTrial(row.trial().name(), slot.device(), means, job, use);
    if (runs.ok()) {
      Note(*runs, job.name, row);
    } else if (absl::IsFailedPrecondition(runs.status()) || absl::IsNotFound(runs.status())) {
      Warn(absl::StrCat("not sanitized: ", runs.status().message()), row);
    } else {
      return runs.status();
    }
  }
  DecideAll(result);
  return absl::OkStatus();
}

}  // namespace attune::submit
