// The keys that programs depend on. A key may be added; none may go or change its meaning.
#include "client/cli/json.h"

#include "client/cli/preflight_text.h"
#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  return keys;
}

TEST(JsonText, HasNoControlCharacterOfOthersAndIsTheSameValue) {
  const std::string note = "\x1b]0;\x7f\xc2\x9b\xe2\x80\xae \xc3\xa9 \xf0\x9f\x98\x80";
  EXPECT_EQ(JsonText(note), R"("\u001b]0;\u007f\u009b\u202e \u00e9 \ud83d\ude00")");
  EXPECT_EQ(Json::parse(JsonText(note)), Json(note));
  EXPECT_EQ(JsonText("cut \xc3"), R"("cut \ufffd")");
}

TEST(TrialJson, HasTheseKeysInThisOrder) {
  EXPECT_THAT(Keys(TrialJson(attune::testing::CannedTrial(1))),
              ElementsAre("type", "trial", "problem", "device", "policy", "verdict", "detail", "variant", "family",
                          "parameters", "latency_ms", "latency_low_ms", "latency_high_ms", "latency_min_ms",
                          "latency_quantiles_ms", "samples", "cycles", "input_sets", "given_up", "settled", "contended",
                          "sm_clock_mhz", "power_w", "temperature_c", "energy", "ctas", "sm_count", "ctas_per_sm",
                          "threads_per_cta", "waves", "occupancy", "registers", "spill_bytes", "shared_bytes",
                          "stack_bytes", "max_abs_error", "plain_max_abs_error", "compile_ms", "artifact_sha256",
                          "source_hash", "toolchain", "driver", "job", "identical_to", "finish_time", "profile",
                          "sanitizing", "check_ms", "time_ms", "device_ms", "wait_ms"));
}

TEST(TrialJson, HasTheFigures) {
  const Json json = TrialJson(attune::testing::CannedTrial(1));
  EXPECT_EQ(json["type"], "trial");
  EXPECT_EQ(json["problem"], "b2.h8.q512.d64.f16");
  EXPECT_EQ(json["policy"], "hot");
  EXPECT_EQ(json["verdict"], "OK");
  EXPECT_DOUBLE_EQ(json["latency_ms"], 0.0412);
  EXPECT_EQ(json["ctas"], 512);
  EXPECT_EQ(json["sm_count"], 58);
  EXPECT_EQ(json["occupancy"], 0.25);
  EXPECT_EQ(json["registers"], 96);
  EXPECT_EQ(json["spill_bytes"], 0);
  EXPECT_EQ(json["shared_bytes"], 49152);
  EXPECT_EQ(json["max_abs_error"], 0.0005);
  EXPECT_EQ(json["parameters"]["BLOCK_M"], 64);
  EXPECT_EQ(json["finish_time"], "2026-09-21T14:13:20Z");
}

TEST(TrialJson, WhatIsNotKnownIsNullAndStillThere) {
  const Json empty = TrialJson(v1::Trial());
  EXPECT_EQ(Keys(empty), Keys(TrialJson(attune::testing::CannedTrial(1))));
  for (const char* key : {"latency_ms", "ctas", "registers", "max_abs_error", "job", "finish_time", "detail"}) {
    EXPECT_TRUE(empty[key].is_null()) << key;
  }
  EXPECT_TRUE(TrialJson(attune::testing::CannedTrial(2))["latency_ms"].is_null());
}

TEST(TrialJson, ACompilerThatReportsNoRegistersReportsNoSpills) {
  v1::Trial trial = attune::testing::CannedTrial(1);
  trial.mutable_resources()->set_registers(0);  // as OpenCL's on a CPU
  const Json json = TrialJson(trial);
  for (const char* key : {"registers", "spill_bytes", "stack_bytes"}) EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_EQ(json["shared_bytes"], 49152);
}

TEST(RetimingJson, HasTheseKeysInThisOrder) {
  EXPECT_THAT(
      Keys(RetimingJson(v1::Retiming())),
      ElementsAre("type", "retiming", "problem", "device", "device_uuid", "policy", "variant", "latency_ms",
                  "latency_low_ms", "latency_high_ms", "latency_min_ms", "latency_quantiles_ms", "samples", "cycles",
                  "input_sets", "given_up", "settled", "contended", "sm_clock_mhz", "power_w", "temperature_c",
                  "energy", "source_hash", "toolchain", "driver", "device_class", "job", "finish_time", "count"));
}

TEST(AnswerJson, HasTheseKeysInThisOrder) {
  EXPECT_THAT(
      Keys(AnswerJson(v1::GetBestResponse(), v1::POLICY_HOT)),
      ElementsAre("type", "problem", "device", "policy", "provenance", "provenance_detail", "variant", "family",
                  "parameters", "latency_ms", "latency_low_ms", "latency_high_ms", "latency_min_ms",
                  "latency_quantiles_ms", "samples", "cycles", "input_sets", "given_up", "settled", "contended",
                  "sm_clock_mhz", "power_w", "temperature_c", "energy", "ctas", "sm_count", "ctas_per_sm",
                  "threads_per_cta", "waves", "occupancy", "max_abs_error", "plain_max_abs_error", "artifact_sha256",
                  "trial", "promote_time", "ties", "speedups", "recipe", "measure_time", "pinned", "claim",
                  "artifact_state", "artifact_reason", "nearest", "predicted", "holds_for", "objective"));
}

TEST(AnswerJson, ANearestProblemsTimeIsNotTheAnswers) {
  v1::GetBestResponse answer;
  answer.set_provenance(v1::PROVENANCE_EXACT);
  *answer.mutable_timing() = attune::testing::CannedTrial(1).timing();
  *answer.mutable_accuracy() = attune::testing::CannedTrial(1).accuracy();
  answer.mutable_measure_time()->set_seconds(1790000000);
  EXPECT_TRUE(AnswerJson(answer, v1::POLICY_HOT)["nearest"].is_null());
  answer.set_provenance(v1::PROVENANCE_NEAREST);
  answer.set_provenance_detail("from b1.h1.q61.d64.f16; from the snapshot of 2026-11-20");
  const Json json = AnswerJson(answer, v1::POLICY_HOT);
  for (const char* key : {"latency_ms", "latency_low_ms", "samples", "max_abs_error", "measure_time"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  EXPECT_THAT(Keys(json["nearest"]),
              ElementsAre("problem", "latency_ms", "latency_low_ms", "latency_high_ms", "measure_time"));
  EXPECT_EQ(json["nearest"]["problem"], "b1.h1.q61.d64.f16");
  EXPECT_DOUBLE_EQ(json["nearest"]["latency_ms"], 0.0412);
  EXPECT_TRUE(json["predicted"].is_null());
  answer.mutable_predicted()->set_us(60);
  answer.mutable_predicted()->set_low_us(40);
  answer.mutable_predicted()->set_high_us(90);
  EXPECT_EQ(AnswerJson(answer, v1::POLICY_HOT)["predicted"],
            Json({{"latency_ms", 0.06}, {"latency_low_ms", 0.04}, {"latency_high_ms", 0.09}}));
}

TEST(PreflightJson, HasNoCompilesOfASpaceTooLargeToList) {
  v1::PreflightResponse preflight;
  v1::PreflightResponse::Family* family = preflight.add_families();
  EXPECT_EQ(PreflightJson(preflight)["families"][0]["compiles"], 0) << "no variant, no compile";
  family->set_variants(2'000'000);
  family->set_lower_bound(true);
  EXPECT_TRUE(PreflightJson(preflight)["families"][0]["compiles"].is_null());
  EXPECT_EQ(VariantCount(*family), "> 2000000");
  family->set_variants(78);
  family->set_compiles(24);
  family->set_lower_bound(false);
  EXPECT_EQ(PreflightJson(preflight)["families"][0]["compiles"], 24);
  EXPECT_EQ(VariantCount(*family), "78");
}

TEST(RecipeJson, HasEveryKindOfArgument) {
  v1::LaunchRecipe recipe;
  auto* launch = recipe.add_launches();
  launch->set_entry("f");
  launch->mutable_grid()->set_x(8);
  launch->add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_LSE);
  launch->mutable_args()->Add()->mutable_buffer()->set_role(v1::BUFFER_ROLE_SCRATCH);
  launch->add_args()->set_i32(1);
  launch->add_args()->set_i64(2);
  v1::KernelArg* stride = launch->add_args();
  stride->set_i64(64);
  stride->mutable_stride()->set_role(v1::BUFFER_ROLE_K);
  stride->mutable_stride()->set_dimension(v1::Stride::DIMENSION_ROW);
  launch->add_args()->set_f32(0.5);
  launch->add_args()->mutable_tensor_map();
  EXPECT_EQ(RecipeJson(recipe)["launches"][0].dump(),
            R"({"entry":"f","grid":[8,0,0],"block":[0,0,0],"dynamic_shared_bytes":0,)"
            R"("args":[{"buffer":"LSE"},{"scratch":0},{"i32":1},{"i64":2},)"
            R"({"i64":64,"stride":{"buffer":"K","dimension":"ROW"}},{"f32":0.5},{"tensor_map":{"base":null,)"
            R"("base_offset":0,"element":"UNSPECIFIED","dims":[],"strides":[],"box":[],"swizzle_bytes":0,)"
            R"("l2_promotion_bytes":0}}],"cluster":null,"overlaps_previous":false})");
}

TEST(RecipeJson, HasTensorMapsAndClusters) {
  v1::LaunchRecipe recipe;
  v1::KernelLaunch* launch = recipe.add_launches();
  launch->mutable_cluster()->set_x(2);
  launch->set_overlaps_previous(true);
  v1::TensorMap* map = launch->add_args()->mutable_tensor_map();
  map->mutable_base()->set_role(v1::BUFFER_ROLE_K);
  map->set_element(v1::TensorMap::ELEMENT_BF16);
  for (const int64_t dim : {128, 1000}) map->add_dims(dim);
  map->add_strides(256);
  for (const int side : {64, 128}) map->add_box(side);
  map->set_swizzle_bytes(128);
  const Json json = RecipeJson(recipe)["launches"][0];
  EXPECT_EQ(json["args"][0]["tensor_map"].dump(),
            R"({"base":{"buffer":"K"},"base_offset":0,"element":"BF16","dims":[128,1000],"strides":[256],)"
            R"("box":[64,128],"swizzle_bytes":128,"l2_promotion_bytes":0})");
  EXPECT_EQ(json["cluster"].dump(), "[2,0,0]");
  EXPECT_EQ(json["overlaps_previous"], true);
}

TEST(ProgressJson, HasTheseKeysInThisOrder) {
  EXPECT_THAT(Keys(ProgressJson(v1::Operation())),
              ElementsAre("type", "operation", "state", "phase", "trials_done", "trials_total", "trials_reused",
                          "trials_per_s", "compiles_done", "compiles_total", "verdicts", "best_variant",
                          "best_latency_ms", "device_busy", "cost", "elapsed_s", "eta_s", "message", "waits_for",
                          "queue_position", "problems_done", "problems_total", "cards"));
}

TEST(ProgressJson, WhatIsNotKnownIsNull) {
  const Json empty = ProgressJson(v1::Operation());
  for (const char* key : {"trials_per_s", "best_variant", "best_latency_ms", "device_busy", "cost", "elapsed_s",
                          "eta_s", "waits_for", "queue_position", "problems_done", "problems_total", "cards"}) {
    EXPECT_TRUE(empty[key].is_null()) << key;
  }
}

TEST(ProgressJson, SaysWhatEachOfSeveralCardsDoes) {
  v1::Operation operation;
  v1::CardShare& first = *operation.mutable_progress()->add_cards();
  first.set_device_id("cuda:0");
  first.set_trials(12);
  first.set_at_work(true);
  v1::CardShare& second = *operation.mutable_progress()->add_cards();
  second.set_device_id("cuda:1");
  second.set_lost("gone");
  const std::string cards = R"([{"device":"cuda:0","trials":12,"at_work":true,"lost":null},)"
                            R"({"device":"cuda:1","trials":0,"at_work":false,"lost":"gone"}])";
  EXPECT_EQ(ProgressJson(operation)["cards"].dump(), cards);
  EXPECT_EQ(TuningJson(operation)["cards"].dump(), cards);
}

TEST(OperationJson, HasTheseKeysInThisOrder) {
  EXPECT_THAT(Keys(OperationJson(v1::Operation())),
              ElementsAre("type", "operation", "title", "state", "done", "phase", "trials_done", "trials_total",
                          "request_id", "create_time", "end_time", "error", "problem", "waits_for", "queue_position",
                          "parent", "device", "cost", "principal", "message"));
}

TEST(OperationJson, WhatHasEndedWaitsForNone) {
  v1::Operation operation;
  operation.mutable_progress()->set_waits_for("operations/3");
  operation.mutable_progress()->set_queue_position(2);
  EXPECT_EQ(OperationJson(operation)["waits_for"], "operations/3");
  EXPECT_EQ(ProgressJson(operation)["queue_position"], 2);
  operation.set_done(true);
  for (const Json& json : {OperationJson(operation), ProgressJson(operation)}) {
    EXPECT_TRUE(json["waits_for"].is_null());
    EXPECT_TRUE(json["queue_position"].is_null());
  }
}

TEST(IncumbentJson, HasThePlayOffsTime) {
  v1::Incumbent incumbent;
  *incumbent.mutable_trial() = attune::testing::CannedTrial(1);
  EXPECT_DOUBLE_EQ(IncumbentJson(incumbent)["latency_ms"], 0.0412) << "an earlier server kept none";
  incumbent.mutable_timing()->set_median_us(42);
  EXPECT_DOUBLE_EQ(IncumbentJson(incumbent)["latency_ms"], 0.042);
  EXPECT_EQ(IncumbentJson(incumbent)["pinned"], false);
}

TEST(IncumbentJson, HasTheAlternatives) {
  v1::Incumbent incumbent;
  v1::Alternative& least = *incumbent.add_alternatives();
  least.set_objective(v1::OBJECTIVE_ENERGY);
  *least.mutable_trial() = attune::testing::CannedTrial(1);
  least.mutable_trial()->mutable_timing()->mutable_energy()->set_joules(0.011);
  incumbent.add_alternatives()->set_objective(v1::OBJECTIVE_EDP);  // the incumbent itself
  const Json alternatives = IncumbentJson(incumbent)["alternatives"];
  ASSERT_EQ(alternatives.size(), 2u);
  EXPECT_THAT(Keys(alternatives[0]), ElementsAre("objective", "variant", "latency_ms", "energy", "trial"));
  EXPECT_EQ(alternatives[0]["objective"], "energy");
  EXPECT_EQ(alternatives[0]["variant"], least.trial().variant().text());
  EXPECT_DOUBLE_EQ(alternatives[0]["latency_ms"], 0.0412);
  EXPECT_EQ(alternatives[0]["energy"]["joules"], 0.011);
  EXPECT_EQ(alternatives[1]["objective"], "edp");
  EXPECT_TRUE(alternatives[1]["variant"].is_null());
}

TEST(TrendJson, WhatWasNeverTimedAgainIsNull) {
  v1::Trend trend;
  trend.set_state(v1::Trend::STATE_NOT_TIMED);
  trend.mutable_served()->set_median_us(40);
  const Json json = TrendJson(trend);
  EXPECT_EQ(json["state"], "NOT_TIMED");
  EXPECT_DOUBLE_EQ(json["served"]["latency_ms"], 0.04);
  for (const char* key : {"change", "since", "latest", "latest_time", "class"}) EXPECT_TRUE(json[key].is_null()) << key;
}

TEST(ResultJson, WhatIsNotKnownIsNull) {
  EXPECT_TRUE(TuningJson(v1::Operation())["floor_ms"].is_null());
  const Json explanation = ExplanationJson(v1::ExplainResponse());
  for (const char* key : {"flops", "bytes", "tflops", "gbs"}) EXPECT_TRUE(explanation[key].is_null()) << key;
  for (const char* key : {"sm_clock_mhz", "uuid", "driver"}) EXPECT_TRUE(DeviceJson(v1::Device())[key].is_null());
  EXPECT_TRUE(BackendJson(v1::BackendStatus())["reason"].is_null());
  EXPECT_TRUE(BaselineJson(v1::Baseline())["note"].is_null());
  EXPECT_TRUE(IncumbentJson(v1::Incumbent())["why"].is_null());
  for (const char* key : {"first_time", "provenance", "provenance_detail", "variant", "artifact_state"}) {
    EXPECT_TRUE(MissJson(v1::Miss())[key].is_null()) << key;
  }
  EXPECT_TRUE(EvaluationJson(v1::Operation())["reason"].is_null());
}

TEST(ResultJson, HasTheseKeysInThisOrder) {
  EXPECT_THAT(Keys(TuningJson(v1::Operation())),
              ElementsAre("type", "operation", "promoted", "decision", "floor_ms", "verdicts", "incumbent", "winner",
                          "play_off", "measure_time", "claim", "anchor_moved", "cards"));
  EXPECT_THAT(Keys(EvaluationJson(v1::Operation())),
              ElementsAre("type", "operation", "decision", "reason", "speedup", "trial", "incumbent", "measure_time"));
  const Json sweep = SweepJson(attune::testing::EndedSweep(true).sweep());
  EXPECT_THAT(Keys(sweep), ElementsAre("type", "title", "device", "regression", "trials", "compiles", "rows"));
  EXPECT_THAT(Keys(sweep["rows"][0]), ElementsAre("problem", "outcome", "before_ms", "after_ms", "variant", "detail",
                                                  "trials", "compiles", "device", "sanitizers"));
  EXPECT_EQ(sweep["rows"][0]["outcome"], "SLOWER");
}

}  // namespace
}  // namespace attune::cli
