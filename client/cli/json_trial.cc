// JSON of trials and answers.
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"
#include "proto/attune/domain.h"
#include "proto/attune/objective.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

Json QuantilesJson(const v1::Timing& timing) {
  Json quantiles = Json::array();
  for (const float us : timing.quantiles_us()) quantiles.push_back(us / 1e3);
  return quantiles;
}

Json EnergyJson(const v1::Energy& energy) {
  return {{"joules", energy.joules()},   {"low_joules", energy.low_joules()}, {"high_joules", energy.high_joules()},
          {"power_w", energy.power_w()}, {"seconds", energy.seconds()},       {"runs", energy.runs()},
          {"spans", energy.spans()},     {"contended", energy.contended()}};
}

void AddTiming(Json* json, bool present, const v1::Timing& timing) {
  (*json)["latency_ms"] = present ? MillisOrNull(timing.median_us()) : Json();
  (*json)["latency_low_ms"] = present ? MillisOrNull(timing.low_us()) : Json();
  (*json)["latency_high_ms"] = present ? MillisOrNull(timing.high_us()) : Json();
  (*json)["latency_min_ms"] = present ? MillisOrNull(timing.min_us()) : Json();
  (*json)["latency_quantiles_ms"] = present ? QuantilesJson(timing) : Json();
  (*json)["samples"] = present ? Json(timing.samples()) : Json();
  (*json)["cycles"] = present ? PositiveOrNull(timing.cycles()) : Json();
  (*json)["input_sets"] = present ? PositiveOrNull(timing.input_sets()) : Json();
  (*json)["given_up"] = present ? Json(timing.given_up()) : Json();
  (*json)["settled"] = present ? Json(timing.settled()) : Json();
  (*json)["contended"] = present ? Json(timing.contended()) : Json();
  (*json)["sm_clock_mhz"] = present ? PositiveOrNull(timing.sm_clock_mhz()) : Json();
  (*json)["power_w"] = present ? PositiveOrNull(timing.power_w()) : Json();
  (*json)["temperature_c"] = present ? PositiveOrNull(timing.temperature_c()) : Json();
  (*json)["energy"] = present && timing.has_energy() ? EnergyJson(timing.energy()) : Json();
}

void AddGeometry(Json* json, bool present, const v1::Geometry& geometry) {
  (*json)["ctas"] = present ? Json(geometry.ctas()) : Json();
  (*json)["sm_count"] = present ? Json(geometry.sm_count()) : Json();
  (*json)["ctas_per_sm"] = present ? Json(geometry.ctas_per_sm()) : Json();
  (*json)["threads_per_cta"] = present ? Json(geometry.threads_per_cta()) : Json();
  (*json)["waves"] = present ? Json(geometry.waves()) : Json();
  (*json)["occupancy"] = present ? Json(geometry.occupancy()) : Json();
}

void AddAccuracy(Json* json, bool present, const v1::Accuracy& accuracy) {
  (*json)["max_abs_error"] = present ? Json(accuracy.max_abs_error()) : Json();
  (*json)["plain_max_abs_error"] = present ? Json(accuracy.plain_max_abs_error()) : Json();
}

Json DimJson(const v1::Dim3& dim) { return Json::array({dim.x(), dim.y(), dim.z()}); }

std::string BufferWord(v1::BufferRole role) {
  const std::string& name = v1::BufferRole_Name(role);
  constexpr absl::string_view kPrefix = "BUFFER_ROLE_";
  return name.size() > kPrefix.size() ? name.substr(kPrefix.size()) : name;
}

Json BufferJson(const v1::KernelArg::Buffer& buffer) {
  if (buffer.role() == v1::BUFFER_ROLE_SCRATCH) return {{"scratch", buffer.scratch()}};
  return {{"buffer", BufferWord(buffer.role())}};
}

Json StrideJson(const v1::Stride& stride) {
  constexpr absl::string_view kPrefix = "DIMENSION_";
  const std::string& dimension = v1::Stride::Dimension_Name(stride.dimension());
  return {{"buffer", BufferWord(stride.role())}, {"dimension", absl::StripPrefix(dimension, kPrefix)}};
}

Json TensorMapJson(const v1::TensorMap& map) {
  constexpr absl::string_view kPrefix = "ELEMENT_";
  const std::string& element = v1::TensorMap::Element_Name(map.element());
  return {{"base", map.has_base() ? BufferJson(map.base()) : Json()},
          {"base_offset", map.base_offset()},
          {"element", absl::StripPrefix(element, kPrefix)},
          {"dims", map.dims()},
          {"strides", map.strides()},
          {"box", map.box()},
          {"swizzle_bytes", map.swizzle_bytes()},
          {"l2_promotion_bytes", map.l2_promotion_bytes()}};
}

Json ArgumentJson(const v1::KernelArg& arg) {
  switch (arg.value_case()) {
    case v1::KernelArg::kBuffer:
      return BufferJson(arg.buffer());
    case v1::KernelArg::kTensorMap:
      return {{"tensor_map", TensorMapJson(arg.tensor_map())}};
    case v1::KernelArg::kI32:
      return {{"i32", arg.i32()}};
    case v1::KernelArg::kI64:
      if (!arg.has_stride()) return {{"i64", arg.i64()}};
      return {{"i64", arg.i64()}, {"stride", StrideJson(arg.stride())}};
    case v1::KernelArg::kF32:
      return {{"f32", arg.f32()}};
    default:
      return Json::object();
  }
}

Json ParametersJson(const v1::Variant& variant) {
  Json parameters = Json::object();
  for (const v1::ParameterValue& parameter : variant.parameters()) parameters[parameter.name()] = parameter.value();
  return parameters;
}

}  // namespace

std::string ProblemText(const v1::Problem& problem) {
  const absl::StatusOr<Problem> read = attune::FromProto(problem);
  return read.ok() ? ToText(*read) : "";
}

Json VariantJson(const v1::Variant& variant) {
  return {{"type", "variant"},
          {"variant", VariantText(variant)},
          {"family", variant.family()},
          {"parameters", ParametersJson(variant)}};
}

Json RecipeJson(const v1::LaunchRecipe& recipe) {
  Json json = {{"main_launch", recipe.main_launch()}, {"scratch", Json::array()}, {"launches", Json::array()}};
  for (const v1::ScratchBuffer& scratch : recipe.scratch()) {
    json["scratch"].push_back({{"name", scratch.name()},
                               {"bytes", scratch.bytes()},
                               {"zero_before_first_run", scratch.zero_before_first_run()}});
  }
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    Json args = Json::array();
    for (const v1::KernelArg& arg : launch.args()) args.push_back(ArgumentJson(arg));
    json["launches"].push_back({{"entry", launch.entry()},
                                {"grid", DimJson(launch.grid())},
                                {"block", DimJson(launch.block())},
                                {"dynamic_shared_bytes", launch.dynamic_shared_bytes()},
                                {"args", std::move(args)},
                                {"cluster", launch.has_cluster() ? DimJson(launch.cluster()) : Json()},
                                {"overlaps_previous", launch.overlaps_previous()}});
  }
  return json;
}

Json TrialJson(const v1::Trial& trial) {
  Json json = {{"type", "trial"},
               {"trial", trial.name()},
               {"problem", trial.problem_text().empty() ? ProblemText(trial.problem()) : trial.problem_text()},
               {"device", trial.device_id()},
               {"policy", attune::Word(trial.policy())},
               {"verdict", attune::Word(trial.verdict())},
               {"detail", TextOrNull(trial.detail())},
               {"variant", VariantText(trial.variant())},
               {"family", trial.variant().family()},
               {"parameters", ParametersJson(trial.variant())}};
  AddTiming(&json, trial.has_timing(), trial.timing());
  AddGeometry(&json, trial.has_geometry(), trial.geometry());
  const bool reported = RegistersKnown(trial.resources());
  json["registers"] = reported ? Json(trial.resources().registers()) : Json();
  json["spill_bytes"] = reported ? Json(trial.resources().spill_bytes()) : Json();
  json["shared_bytes"] = trial.has_resources() ? Json(trial.resources().shared_bytes()) : Json();
  json["stack_bytes"] = reported ? Json(trial.resources().stack_bytes()) : Json();
  AddAccuracy(&json, trial.has_accuracy(), trial.accuracy());
  json["compile_ms"] = PositiveOrNull(trial.compile_ms());
  json["artifact_sha256"] = TextOrNull(trial.artifact_sha256());
  json["source_hash"] = TextOrNull(trial.dependencies().source_hash());
  json["toolchain"] = TextOrNull(trial.dependencies().toolchain());
  json["driver"] = TextOrNull(trial.dependencies().driver());
  json["job"] = TextOrNull(trial.job());
  json["identical_to"] = TextOrNull(trial.identical_to());
  json["finish_time"] = TextOrNull(Iso(trial.finish_time()));
  json["profile"] = trial.has_profile() ? ProfileJson(trial.profile()) : Json();
  json["sanitizing"] = trial.has_sanitizing() ? SanitizingJson(trial.sanitizing()) : Json();
  json["check_ms"] = PositiveOrNull(trial.cost().check_ms());
  json["time_ms"] = PositiveOrNull(trial.cost().time_ms());
  json["device_ms"] = PositiveOrNull(trial.cost().device_ms());
  json["wait_ms"] = trial.has_cost() ? Json(trial.cost().wait_ms()) : Json();
  return json;
}

Json AnswerJson(const v1::GetBestResponse& answer, v1::Policy policy) {
  Json json = {{"type", "answer"},
               {"problem", ProblemText(answer.problem())},
               {"device", answer.device_id()},
               {"policy", attune::Word(policy)},
               {"provenance", Word(answer.provenance())},
               {"provenance_detail", TextOrNull(answer.provenance_detail())},
               {"variant", VariantText(answer.variant())},
               {"family", answer.variant().family()},
               {"parameters", ParametersJson(answer.variant())}};
  const bool own = !IsOfNearest(answer);
  AddTiming(&json, own && answer.has_timing(), answer.timing());
  AddGeometry(&json, answer.has_geometry(), answer.geometry());
  AddAccuracy(&json, own && answer.has_accuracy(), answer.accuracy());
  json["artifact_sha256"] = TextOrNull(answer.artifact_sha256());
  json["trial"] = TextOrNull(answer.trial());
  json["promote_time"] = TextOrNull(Iso(answer.promote_time()));
  json["ties"] = Json::array();
  for (const v1::Variant& tie : answer.ties()) json["ties"].push_back(VariantText(tie));
  json["speedups"] = Json::object();
  for (const v1::Baseline& baseline : answer.baselines()) {
    if (own && answer.timing().median_us() > 0) {
      json["speedups"][baseline.contender()] = baseline.median_us() / answer.timing().median_us();
    }
  }
  json["recipe"] = answer.has_recipe() ? RecipeJson(answer.recipe()) : Json();
  json["measure_time"] = own ? TextOrNull(Iso(answer.measure_time())) : Json();
  json["pinned"] = answer.pinned();
  json["claim"] = ClaimJson(answer.has_claim(), answer.claim());
  const bool known = answer.artifact_state() != v1::ARTIFACT_STATE_UNSPECIFIED;
  json["artifact_state"] = known ? Json(Word(answer.artifact_state())) : Json();
  json["artifact_reason"] = TextOrNull(answer.artifact_reason());
  json["nearest"] = Json();
  if (!own) {
    json["nearest"] = {{"problem", TextOrNull(NearestProblem(answer))},
                       {"latency_ms", MillisOrNull(answer.timing().median_us())},
                       {"latency_low_ms", MillisOrNull(answer.timing().low_us())},
                       {"latency_high_ms", MillisOrNull(answer.timing().high_us())},
                       {"measure_time", TextOrNull(Iso(answer.measure_time()))}};
  }
  json["predicted"] = Json();
  if (answer.has_predicted()) {
    json["predicted"] = {{"latency_ms", MillisOrNull(answer.predicted().us())},
                         {"latency_low_ms", MillisOrNull(answer.predicted().low_us())},
                         {"latency_high_ms", MillisOrNull(answer.predicted().high_us())}};
  }
  json["holds_for"] = Json::array();
  for (const v1::Domain& domain : answer.domains()) {
    json["holds_for"].push_back(
        {{"axis", attune::Word(domain.axis())}, {"low", domain.low()}, {"high", domain.high()}});
  }
  json["objective"] = attune::Word(answer.objective());
  return json;
}

Json IncumbentJson(const v1::Incumbent& incumbent) {
  Json json = {{"type", "incumbent"},
               {"incumbent", incumbent.name()},
               {"problem", incumbent.problem_text()},
               {"device", incumbent.device_id()},
               {"policy", attune::Word(incumbent.policy())},
               {"variant", VariantText(incumbent.trial().variant())},
               {"latency_ms", MillisOrNull(ServedTiming(incumbent).median_us())},
               {"trial", incumbent.trial().name()},
               {"promote_time", TextOrNull(Iso(incumbent.promote_time()))},
               {"job", TextOrNull(incumbent.job())},
               {"previous", TextOrNull(incumbent.previous())},
               {"why", TextOrNull(incumbent.why())},
               {"rolled_back", incumbent.rolled_back()},
               {"ties", Json::array()}};
  for (const v1::Variant& tie : incumbent.ties()) json["ties"].push_back(VariantText(tie));
  json["latency_low_ms"] = MillisOrNull(ServedTiming(incumbent).low_us());
  json["latency_high_ms"] = MillisOrNull(ServedTiming(incumbent).high_us());
  json["pinned"] = incumbent.pinned();
  json["alternatives"] = Json::array();
  for (const v1::Alternative& one : incumbent.alternatives()) {
    const bool other = one.has_trial();
    const v1::Timing& timing = one.trial().timing();
    json["alternatives"].push_back({{"objective", attune::Word(one.objective())},
                                    {"variant", other ? Json(VariantText(one.trial().variant())) : Json()},
                                    {"latency_ms", other ? MillisOrNull(timing.median_us()) : Json()},
                                    {"energy", timing.has_energy() ? EnergyJson(timing.energy()) : Json()},
                                    {"trial", other ? TextOrNull(one.trial().name()) : Json()}});
  }
  return json;
}

Json RetimingJson(const v1::Retiming& retiming) {
  Json json = {{"type", "retiming"},
               {"retiming", retiming.name()},
               {"problem", retiming.problem_text()},
               {"device", retiming.device_id()},
               {"device_uuid", TextOrNull(retiming.device_uuid())},
               {"policy", attune::Word(retiming.policy())},
               {"variant", retiming.variant()}};
  AddTiming(&json, true, retiming.timing());
  json["source_hash"] = TextOrNull(retiming.dependencies().source_hash());
  json["toolchain"] = TextOrNull(retiming.dependencies().toolchain());
  json["driver"] = TextOrNull(retiming.dependencies().driver());
  json["device_class"] = TextOrNull(retiming.dependencies().device_fingerprint());
  json["job"] = TextOrNull(retiming.job());
  json["finish_time"] = TextOrNull(Iso(retiming.finish_time()));
  json["count"] = retiming.count();
  return json;
}

Json RetryJson(const v1::RetryTrialsResponse& retry) {
  return {{"type", "retry"}, {"trials", retry.trials()}, {"codes", retry.codes()}, {"problems", retry.problems()}};
}

Json MissJson(const v1::Miss& miss) {
  const bool answered = miss.provenance() != v1::PROVENANCE_UNSPECIFIED;
  const bool known = miss.artifact_state() != v1::ARTIFACT_STATE_UNSPECIFIED;
  return {{"type", "miss"},
          {"problem", miss.problem_text()},
          {"device", miss.device_id()},
          {"policy", attune::Word(miss.policy())},
          {"count", miss.count()},
          {"first_time", TextOrNull(Iso(miss.first_time()))},
          {"last_time", TextOrNull(Iso(miss.last_time()))},
          {"provenance", answered ? Json(Word(miss.provenance())) : Json()},
          {"provenance_detail", TextOrNull(miss.provenance_detail())},
          {"variant", TextOrNull(VariantText(miss.variant()))},
          {"artifact_state", known ? Json(Word(miss.artifact_state())) : Json()}};
}

Json BaselineJson(const v1::Baseline& baseline) {
  return {{"type", "baseline"},
          {"problem", baseline.problem_text().empty() ? ProblemText(baseline.problem()) : baseline.problem_text()},
          {"device", baseline.device_id()},
          {"policy", attune::Word(baseline.policy())},
          {"contender", baseline.contender()},
          {"latency_ms", MillisOrNull(baseline.median_us())},
          {"latency_low_ms", MillisOrNull(baseline.low_us())},
          {"latency_high_ms", MillisOrNull(baseline.high_us())},
          {"record_time", TextOrNull(Iso(baseline.record_time()))},
          {"note", TextOrNull(baseline.note())}};
}

Json ExplanationJson(const v1::ExplainResponse& explanation) {
  Json json = {{"type", "explanation"}, {"findings", Json::array()}};
  for (const auto& finding : explanation.findings()) {
    json["findings"].push_back(
        {{"bound", Word(finding.bound())}, {"text", finding.text()}, {"advice", TextOrNull(finding.advice())}});
  }
  json["flops"] = PositiveOrNull(explanation.flops());
  json["bytes"] = PositiveOrNull(explanation.bytes());
  json["tflops"] = PositiveOrNull(explanation.tflops());
  json["gbs"] = PositiveOrNull(explanation.gbs());
  json["trial"] = TrialJson(explanation.trial());
  return json;
}

}  // namespace attune::cli
