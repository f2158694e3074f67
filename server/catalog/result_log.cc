#include "server/catalog/result_log.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"
#include "server/catalog/served_timing.h"

namespace attune::catalog {

namespace {

std::string Microseconds(const v1::Incumbent& incumbent) {
  return absl::StrFormat("%.2f", ServedTiming(incumbent).median_us());
}

std::string PolicyOf(const v1::Incumbent& incumbent) {
  return std::string(absl::StripPrefix(v1::Policy_Name(incumbent.policy()), "POLICY_"));
}

}  // namespace

void LogPromotion(const std::optional<v1::Incumbent>& before, const v1::Incumbent& now) {
  std::vector<LogField> fields = {{"problem", now.problem_text()},
                                  {"device", now.device_id()},
                                  {"policy", PolicyOf(now)},
                                  {"variant", now.trial().variant().text()},
                                  {"us", Microseconds(now)}};
  if (before.has_value()) {
    fields.emplace_back("before", before->trial().variant().text());
    fields.emplace_back("before_us", Microseconds(*before));
  }
  fields.emplace_back("why", now.why());
  fields.emplace_back("job", now.job());
  const bool same = before.has_value() && before->trial().variant().text() == now.trial().variant().text() &&
                    before->pinned() == now.pinned();
  Log(LogLevel::kInfo, same ? "incumbent timed again" : "promoted", fields);
}

void LogRollBack(const v1::Incumbent& now, absl::string_view why) {
  LogInfo("rolled back", {{"problem", now.problem_text()},
                          {"device", now.device_id()},
                          {"policy", PolicyOf(now)},
                          {"variant", now.trial().variant().text()},
                          {"us", Microseconds(now)},
                          {"why", why}});
}

}  // namespace attune::catalog
