#include "server/jobs/job_log.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"

namespace attune::jobs {
namespace {

// "OK" of VERDICT_OK.
std::string Short(absl::string_view name, absl::string_view prefix) {
  return std::string(absl::StripPrefix(name, prefix));
}

std::string VerdictsOf(const v1::OperationProgress& progress) {
  return absl::StrJoin(progress.verdicts(), ",", [](std::string* out, const v1::VerdictCount& count) {
    absl::StrAppend(out, Short(v1::Verdict_Name(count.verdict()), "VERDICT_"), ":", count.count());
  });
}

std::string OutcomesOf(const v1::SweepReport& report) {
  std::map<v1::SweepReport::Outcome, int> counts;
  for (const v1::SweepReport::Row& row : report.rows()) ++counts[row.outcome()];
  return absl::StrJoin(counts, ",", [](std::string* out, const auto& count) {
    absl::StrAppend(out, Short(v1::SweepReport::Outcome_Name(count.first), "OUTCOME_"), ":", count.second);
  });
}

void AddCaller(const v1::Operation& operation, const std::string& trace, std::vector<LogField>& fields) {
  if (!operation.principal().empty()) fields.emplace_back("principal", operation.principal());
  if (!trace.empty()) fields.emplace_back("trace", trace);
}

}  // namespace

const char* WordOf(store::JobKind kind) {
  switch (kind) {
    case store::JobKind::kTune:
      return "tune";
    case store::JobKind::kSweep:
      return "sweep";
    case store::JobKind::kEvaluate:
      return "evaluate";
    case store::JobKind::kSweepProblem:
      return "sweep_problem";
    case store::JobKind::kSubmit:
      return "submit";
    case store::JobKind::kProfile:
      return "profile";
    case store::JobKind::kSanitize:
      return "sanitize";
  }
  return "unknown";
}

void LogJob(absl::string_view event, const v1::Operation& operation, const std::string& trace) {
  std::vector<LogField> fields = {{"job", operation.name()}, {"title", operation.title()}};
  AddCaller(operation, trace, fields);
  Log(LogLevel::kInfo, event, fields);
}

void LogJobEnd(const v1::Operation& operation, const std::string& trace) {
  const v1::OperationProgress& progress = operation.progress();
  const double seconds = static_cast<double>(progress.elapsed().seconds()) + progress.elapsed().nanos() * 1e-9;
  std::vector<LogField> fields = {{"job", operation.name()},
                                  {"title", operation.title()},
                                  {"state", Short(v1::Operation::State_Name(operation.state()), "STATE_")},
                                  {"seconds", absl::StrFormat("%.1f", seconds)}};
  if (operation.has_sweep()) fields.emplace_back("outcomes", OutcomesOf(operation.sweep()));
  if (progress.trials_done() > 0) {
    fields.emplace_back("trials", progress.trials_done());
    fields.emplace_back("reused", progress.trials_reused());
    fields.emplace_back("verdicts", VerdictsOf(progress));
  }
  const bool failed = operation.state() == v1::Operation::STATE_FAILED;
  if (failed) fields.emplace_back("error", operation.error().message());
  AddCaller(operation, trace, fields);
  Log(failed ? LogLevel::kError : LogLevel::kInfo, "job ended", fields);
}

}  // namespace attune::jobs
