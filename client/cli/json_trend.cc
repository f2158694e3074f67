#include "client/cli/json.h"
#include "client/cli/json_values.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

// Median and interval of a time that may be missing.
Json TimeJson(bool known, const v1::Timing& timing) {
  if (!known) return nullptr;
  return {{"latency_ms", MillisOrNull(timing.median_us())},
          {"latency_low_ms", MillisOrNull(timing.low_us())},
          {"latency_high_ms", MillisOrNull(timing.high_us())}};
}

}  // namespace

Json TrendJson(const v1::Trend& trend) {
  Json json = {{"type", "trend"},
               {"problem", trend.problem_text()},
               {"device", trend.device_id()},
               {"device_uuid", TextOrNull(trend.device_uuid())},
               {"device_class", TextOrNull(trend.device_class())},
               {"class", TextOrNull(trend.class_alias())},
               {"policy", attune::Word(trend.policy())},
               {"state", Word(trend.state())},
               {"change", trend.has_latest() ? Json(trend.change()) : Json()},
               {"since", TextOrNull(Iso(trend.since()))},
               {"nights", trend.nights()},
               {"unsettled_nights", trend.unsettled_nights()},
               {"incumbent", trend.incumbent()},
               {"variant", trend.variant()},
               {"pinned", trend.pinned()},
               {"served", TimeJson(trend.has_served(), trend.served())},
               {"promote_time", TextOrNull(Iso(trend.promote_time()))},
               {"reference", TimeJson(trend.has_reference(), trend.reference())},
               {"reference_time", TextOrNull(Iso(trend.reference_time()))},
               {"reference_variant", TextOrNull(trend.reference_variant())},
               {"latest", TimeJson(trend.has_latest(), trend.latest())},
               {"latest_time", TextOrNull(Iso(trend.latest_time()))},
               {"latest_device", TextOrNull(trend.latest_device_id())},
               {"latest_job", TextOrNull(trend.latest_job())},
               {"changes", Json::array()}};
  for (const v1::DependencyChange& change : trend.changes()) {
    json["changes"].push_back({{"what", change.what()}, {"from", change.from()}, {"to", change.to()}});
  }
  return json;
}

Json ComparedTimesJson(const v1::CompareTimesResponse& response) {
  Json json = {
      {"type", "comparison"}, {"geometric_mean", PositiveOrNull(response.geometric_mean())}, {"rows", Json::array()}};
  for (const auto& row : response.rows()) {
    json["rows"].push_back({{"problem", row.problem()},
                            {"comparison", Word(row.comparison())},
                            {"speedup", PositiveOrNull(row.speedup())},
                            {"from", row.has_from() ? RetimingJson(row.from()) : Json()},
                            {"to", row.has_to() ? RetimingJson(row.to()) : Json()}});
  }
  return json;
}

}  // namespace attune::cli
