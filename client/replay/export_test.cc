#include "client/replay/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/replay/recorded_space.h"
#include "nlohmann/json.hpp"

namespace attune::replay {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

void AddRow(v1::Recording& recording, int family, std::vector<int64_t> values, attune::v1::Verdict verdict,
            double median_us) {
  v1::Row& row = *recording.add_rows();
  row.set_family(family);
  for (int64_t value : values) row.add_values(value);
  row.add_features(0);
  row.set_verdict(verdict);
  row.set_median_us(median_us);
}

// Family "tiles" has two rows, "waves" one.
v1::Recording TwoFamilies() {
  v1::Recording recording;
  recording.set_problem("b2.h3.q128.d64.f16");
  recording.set_device_model("Card");
  recording.set_driver("580");
  recording.set_toolchain("nvrtc 13.0");
  recording.mutable_record_time()->set_seconds(1795720025);
  v1::Family& tiles = *recording.add_families();
  tiles.set_name("tiles");
  tiles.set_source_hash("abc");
  tiles.add_parameters("BLOCK");
  tiles.add_parameters("STAGES");
  v1::Family& waves = *recording.add_families();
  waves.set_name("waves");
  waves.add_parameters("WAVE");
  recording.add_features("BLOCK");
  AddRow(recording, 0, {32, 1}, attune::v1::VERDICT_OK, 7500);
  AddRow(recording, 1, {4}, attune::v1::VERDICT_OK, 3000);
  AddRow(recording, 0, {16, 1}, attune::v1::VERDICT_CRASHED, 0);
  v1::Row& row = *recording.mutable_rows(0);
  row.set_low_us(7250);
  row.set_high_us(7750);
  row.set_min_us(7000);
  row.set_samples(40);
  row.set_compile_ms(250);
  row.set_trial_ms(12.5);
  row.set_registers(96);
  row.set_shared_bytes(4096);
  return recording;
}

v1::Recording Tiles() { return *OnlyFamily(TwoFamilies(), "tiles"); }

TEST(Export, ACacheHasTheParametersAndEveryVariant) {
  EXPECT_EQ(KernelTunerCache(Tiles()),
            R"({"problem":"b2.h3.q128.d64.f16","device_name":"Card","kernel_name":"tiles","problem_size":[2,3,128],)"
            R"("tune_params_keys":["BLOCK","STAGES"],"tune_params":{"BLOCK":[16,32],"STAGES":[1]},"objective":"time",)"
            R"("cache":{"32,1":{"BLOCK":32,"STAGES":1,"time":7.5,"compile_time":250.0,"verification_time":0,)"
            R"("benchmark_time":12.5,"strategy_time":0,"framework_time":0,"timestamp":"2026-11-26T19:07:05Z"},)"
            R"("16,1":{"BLOCK":16,"STAGES":1,"__error__":"RuntimeFailedConfig","compile_time":0.0,)"
            R"("verification_time":0,"benchmark_time":0.0,"strategy_time":0,"framework_time":0,)"
            R"("timestamp":"2026-11-26T19:07:05Z"}}})"
            "\n");
}

TEST(Export, ACacheSaysHowAVariantFailed) {
  const auto error = [](attune::v1::Verdict verdict) -> std::string {
    v1::Recording recording = Tiles();
    recording.mutable_rows(1)->set_verdict(verdict);
    return Json::parse(KernelTunerCache(recording))["cache"]["16,1"]["__error__"];
  };
  EXPECT_EQ(error(attune::v1::VERDICT_INFEASIBLE), "InvalidConfig");
  EXPECT_EQ(error(attune::v1::VERDICT_COMPILE_ERROR), "CompilationFailedConfig");
  EXPECT_EQ(error(attune::v1::VERDICT_WRONG_RESULT), "RuntimeFailedConfig");
  EXPECT_EQ(error(attune::v1::VERDICT_OK), "RuntimeFailedConfig");  // without a time
}

TEST(Export, ResultsOfT4HaveTimesAndResources) {
  const Json expected = Json::parse(R"({
    "schema_version": "1.0.0",
    "results": [
      {"timestamp": "2026-11-26T19:07:05Z", "configuration": {"BLOCK": 32, "STAGES": 1}, "objectives": ["time"],
       "times": {"compilation_time": 250.0, "runtimes": [], "framework": 0, "search_algorithm": 0, "validation": 0},
       "invalidity": "correct", "correctness": 1,
       "measurements": [
         {"name": "time", "value": 7.5, "unit": "ms"}, {"name": "time_low", "value": 7.25, "unit": "ms"},
         {"name": "time_high", "value": 7.75, "unit": "ms"}, {"name": "time_min", "value": 7.0, "unit": "ms"},
         {"name": "samples", "value": 40, "unit": ""}, {"name": "registers", "value": 96, "unit": ""},
         {"name": "spill_bytes", "value": 0, "unit": "B"}, {"name": "shared_bytes", "value": 4096, "unit": "B"}]},
      {"timestamp": "2026-11-26T19:07:05Z", "configuration": {"BLOCK": 16, "STAGES": 1}, "objectives": ["time"],
       "times": {"compilation_time": 0.0, "runtimes": [], "framework": 0, "search_algorithm": 0, "validation": 0},
       "invalidity": "runtime", "correctness": 0,
       "measurements": [
         {"name": "registers", "value": 0, "unit": ""}, {"name": "spill_bytes", "value": 0, "unit": "B"},
         {"name": "shared_bytes", "value": 0, "unit": "B"}]}],
    "metadata": {"timeunit": "milliseconds", "problem": "b2.h3.q128.d64.f16", "kernel": "tiles", "source_hash": "abc",
                 "device": "Card", "driver": "580", "toolchain": "nvrtc 13.0"}})");
  EXPECT_EQ(Json::parse(T4Results(Tiles())), expected);
}

TEST(Export, ResultsOfT4SayHowAVariantFailed) {
  const auto invalidity = [](attune::v1::Verdict verdict) -> std::string {
    v1::Recording recording = Tiles();
    recording.mutable_rows(1)->set_verdict(verdict);
    return Json::parse(T4Results(recording))["results"][1]["invalidity"];
  };
  EXPECT_EQ(invalidity(attune::v1::VERDICT_INFEASIBLE), "constraints");
  EXPECT_EQ(invalidity(attune::v1::VERDICT_COMPILE_ERROR), "compile");
  EXPECT_EQ(invalidity(attune::v1::VERDICT_OUT_OF_BOUNDS), "correctness");
  EXPECT_EQ(invalidity(attune::v1::VERDICT_TIMEOUT), "timeout");
  EXPECT_EQ(invalidity(attune::v1::VERDICT_UNSTABLE), "runtime");
}

TEST(OnlyFamily, KeepsItsRowsAsTheFirstFamily) {
  const auto waves = OnlyFamily(TwoFamilies(), "waves");
  ASSERT_TRUE(waves.ok()) << waves.status();
  ASSERT_EQ(waves->families_size(), 1);
  EXPECT_EQ(waves->families(0).name(), "waves");
  ASSERT_EQ(waves->rows_size(), 1);
  EXPECT_EQ(waves->rows(0).family(), 0);
  EXPECT_EQ(waves->rows(0).median_us(), 3000);
}

TEST(OnlyFamily, NeedsNoNameWhereThereIsOne) {
  const auto tiles = OnlyFamily(Tiles(), "");
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  EXPECT_EQ(tiles->SerializeAsString(), Tiles().SerializeAsString());
}

TEST(OnlyFamily, MistakesAreNamed) {
  const absl::Status unknown = OnlyFamily(TwoFamilies(), "rings").status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_EQ(unknown.message(), "--family is 'rings'; b2.h3.q128.d64.f16 has tiles, waves");
  EXPECT_THAT(std::string(OnlyFamily(TwoFamilies(), "").status().message()),
              HasSubstr("--family is not given; b2.h3.q128.d64.f16 has tiles, waves"));
}

}  // namespace
}  // namespace attune::replay
