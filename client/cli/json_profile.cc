// JSON of what tools say of a trial's code.
#include "client/cli/json.h"
#include "client/cli/profile_text.h"
#include "client/cli/text.h"

namespace attune::cli {

Json ProfileJson(const v1::Profile& profile) {
  Json json = {{"kernels", Json::array()},
               {"time", TextOrNull(Iso(profile.time()))},
               {"operation", TextOrNull(profile.operation())}};
  for (const v1::KernelProfile& kernel : profile.kernels()) {
    Json counters = Json::object(), stalls = Json::object();
    for (const v1::Counter& counter : kernel.counters()) counters[counter.name()] = counter.value();
    for (const v1::Stall& stall : kernel.stalls()) stalls[stall.reason()] = stall.share();
    json["kernels"].push_back({{"entry", kernel.entry()}, {"counters", counters}, {"stalls", stalls}});
  }
  return json;
}

Json SanitizingJson(const v1::Sanitizing& sanitizing) {
  Json json = {{"runs", Json::array()},
               {"time", TextOrNull(Iso(sanitizing.time()))},
               {"operation", TextOrNull(sanitizing.operation())}};
  for (const v1::SanitizerRun& run : sanitizing.runs()) {
    Json findings = Json::array();
    for (const std::string& finding : run.findings()) findings.push_back(finding);
    json["runs"].push_back({{"tool", Word(run.tool())},
                            {"errors", run.errors()},
                            {"incomplete", TextOrNull(run.incomplete())},
                            {"findings", findings}});
  }
  return json;
}

Json ProfileResultJson(const v1::ProfileResult& result) {
  return {{"type", "profile_result"}, {"bound", TextOrNull(result.bound())}, {"trial", TrialJson(result.trial())}};
}

Json SanitizeResultJson(const v1::SanitizeResult& result) {
  return {{"type", "sanitize_result"},
          {"clean", result.clean()},
          {"reason", result.reason()},
          {"trial", TrialJson(result.trial())}};
}

}  // namespace attune::cli
