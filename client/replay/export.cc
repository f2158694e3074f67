#include "client/replay/export.h"

#include <google/protobuf/util/time_util.h>

#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/replay/recorded_space.h"
#include "nlohmann/json.hpp"
#include "proto/attune/problem.h"

namespace attune::replay {
namespace {

using Json = nlohmann::ordered_json;

double Milliseconds(double us) { return us / 1000; }

// What Kernel Tuner calls a configuration without a time.
std::string ErrorOf(attune::v1::Verdict verdict) {
  switch (verdict) {
    case attune::v1::VERDICT_INFEASIBLE:
      return "InvalidConfig";
    case attune::v1::VERDICT_COMPILE_ERROR:
      return "CompilationFailedConfig";
    default:
      return "RuntimeFailedConfig";
  }
}

std::string InvalidityOf(const v1::Row& row) {
  if (HasTime(row)) return "correct";
  switch (row.verdict()) {
    case attune::v1::VERDICT_INFEASIBLE:
      return "constraints";
    case attune::v1::VERDICT_COMPILE_ERROR:
      return "compile";
    case attune::v1::VERDICT_WRONG_RESULT:
    case attune::v1::VERDICT_OUT_OF_BOUNDS:
      return "correctness";
    case attune::v1::VERDICT_TIMEOUT:
      return "timeout";
    default:
      return "runtime";
  }
}

Json Configuration(const v1::Recording& recording, const v1::Row& row) {
  Json configuration = Json::object();
  const v1::Family& family = recording.families(0);
  for (int i = 0; i < family.parameters_size(); ++i) configuration[family.parameters(i)] = row.values(i);
  return configuration;
}

// Of each parameter the values that were recorded, ascending.
Json TuneParams(const v1::Recording& recording) {
  Json parameters = Json::object();
  const v1::Family& family = recording.families(0);
  for (int i = 0; i < family.parameters_size(); ++i) {
    std::set<int64_t> values;
    for (const v1::Row& row : recording.rows()) values.insert(row.values(i));
    parameters[family.parameters(i)] = std::vector<int64_t>(values.begin(), values.end());
  }
  return parameters;
}

std::string Timestamp(const v1::Recording& recording) {
  return google::protobuf::util::TimeUtil::ToString(recording.record_time());
}

Json Measurement(const char* name, Json value, const char* unit) {
  return {{"name", name}, {"value", std::move(value)}, {"unit", unit}};
}

Json MeasurementsOf(const v1::Row& row) {
  Json measurements = Json::array();
  if (HasTime(row)) {
    measurements.push_back(Measurement("time", Milliseconds(row.median_us()), "ms"));
    measurements.push_back(Measurement("time_low", Milliseconds(row.low_us()), "ms"));
    measurements.push_back(Measurement("time_high", Milliseconds(row.high_us()), "ms"));
    measurements.push_back(Measurement("time_min", Milliseconds(row.min_us()), "ms"));
    measurements.push_back(Measurement("samples", row.samples(), ""));
  }
  measurements.push_back(Measurement("registers", row.registers(), ""));
  measurements.push_back(Measurement("spill_bytes", row.spill_bytes(), "B"));
  measurements.push_back(Measurement("shared_bytes", row.shared_bytes(), "B"));
  return measurements;
}

}  // namespace

std::string KernelTunerCache(const v1::Recording& recording) {
  const v1::Family& family = recording.families(0);
  Json cache;
  cache["problem"] = recording.problem();
  cache["device_name"] = recording.device_model();
  cache["kernel_name"] = family.name();
  cache["problem_size"] = Json::array();
  if (const auto problem = ParseProblem(recording.problem()); problem.ok()) {
    cache["problem_size"] = {problem->batch, problem->heads_q, problem->seq_q};
  }
  cache["tune_params_keys"] = std::vector<std::string>(family.parameters().begin(), family.parameters().end());
  cache["tune_params"] = TuneParams(recording);
  cache["objective"] = "time";
  Json& entries = cache["cache"] = Json::object();  // the last one: Kernel Tuner knows a closed file by its last braces
  for (const v1::Row& row : recording.rows()) {
    Json entry = Configuration(recording, row);
    if (HasTime(row)) {
      entry["time"] = Milliseconds(row.median_us());
    } else {
      entry["__error__"] = ErrorOf(row.verdict());
    }
    entry["compile_time"] = row.compile_ms();
    entry["verification_time"] = 0;
    entry["benchmark_time"] = row.trial_ms();
    entry["strategy_time"] = 0;
    entry["framework_time"] = 0;
    entry["timestamp"] = Timestamp(recording);
    entries[absl::StrJoin(row.values(), ",")] = std::move(entry);
  }
  return cache.dump() + "\n";
}

std::string T4Results(const v1::Recording& recording) {
  Json results = Json::array();
  for (const v1::Row& row : recording.rows()) {
    Json result;
    result["timestamp"] = Timestamp(recording);
    result["configuration"] = Configuration(recording, row);
    result["objectives"] = {"time"};
    result["times"] = {{"compilation_time", row.compile_ms()},
                       {"runtimes", Json::array()},
                       {"framework", 0},
                       {"search_algorithm", 0},
                       {"validation", 0}};
    const std::string invalidity = InvalidityOf(row);
    result["invalidity"] = invalidity;
    result["correctness"] = invalidity == "correct" ? 1 : 0;
    result["measurements"] = MeasurementsOf(row);
    results.push_back(std::move(result));
  }
  const Json all = {{"schema_version", "1.0.0"},
                    {"results", std::move(results)},
                    {"metadata",
                     {{"timeunit", "milliseconds"},
                      {"problem", recording.problem()},
                      {"kernel", recording.families(0).name()},
                      {"source_hash", recording.families(0).source_hash()},
                      {"device", recording.device_model()},
                      {"driver", recording.driver()},
                      {"toolchain", recording.toolchain()}}}};
  return all.dump(1) + "\n";
}

}  // namespace attune::replay
