#include "server/jobs/journal.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"
#include "server/promotion/promotion.h"

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

std::string Microseconds(const v1::Timing& timing) { return absl::StrFormat("%.4g", timing.median_us()); }

std::string PolicyOf(v1::Policy policy) { return Short(v1::Policy_Name(policy), "POLICY_"); }

}  // namespace

void LogJob(absl::string_view event, const v1::Operation& operation) {
  LogInfo(event, {{"job", operation.name()}, {"title", operation.title()}});
}

void LogJobEnd(const v1::Operation& operation) {
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
  Log(failed ? LogLevel::kError : LogLevel::kInfo, "job ended", fields);
}

void LogTrial(const v1::Trial& trial) {
  LogDebug("trial", {{"trial", trial.name()},
                     {"job", trial.job()},
                     {"problem", trial.problem_text()},
                     {"variant", trial.variant().text()},
                     {"verdict", Short(v1::Verdict_Name(trial.verdict()), "VERDICT_")},
                     {"us", Microseconds(trial.timing())},
                     {"detail", absl::string_view(trial.detail()).substr(0, 200)}});
}

void LogPromotion(const std::optional<v1::Incumbent>& before, const v1::Incumbent& now) {
  std::vector<LogField> fields = {{"problem", now.problem_text()},
                                  {"device", now.device_id()},
                                  {"policy", PolicyOf(now.policy())},
                                  {"variant", now.trial().variant().text()},
                                  {"us", Microseconds(promotion::ServedTiming(now))}};
  if (before.has_value()) {
    fields.emplace_back("before", before->trial().variant().text());
    fields.emplace_back("before_us", Microseconds(promotion::ServedTiming(*before)));
  }
  fields.emplace_back("why", now.why());
  fields.emplace_back("job", now.job());
  Log(LogLevel::kInfo, "promoted", fields);
}

void LogRollBack(const v1::Incumbent& now, absl::string_view why) {
  LogInfo("rolled back", {{"problem", now.problem_text()},
                          {"device", now.device_id()},
                          {"policy", PolicyOf(now.policy())},
                          {"variant", now.trial().variant().text()},
                          {"us", Microseconds(promotion::ServedTiming(now))},
                          {"why", why}});
}

}  // namespace attune::jobs
