// Spaces of a billion variants: what tuning, counting and guessing make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/catalog/preflight.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::HasSubstr;

// BLOCK and nine launch-time parameters of ten values, of which SPLITS takes part in the grid.
std::shared_ptr<const space::Family> Billion(const std::string& rules = "") {
  std::string manifest = R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK" values: [16] binding: BINDING_COMPILE_TIME guess: 16 })";
  for (const char name : absl::string_view("ABCDEFGHI")) {
    absl::StrAppend(&manifest, "parameters { name: \"", std::string(1, name),
                    "\" values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] guess: 5 binding: BINDING_LAUNCH_TIME }");
  }
  absl::StrAppend(&manifest, rules, R"(
    launches { entry: "attention" grid_x: "ceil_div(seq_q, BLOCK) * A" block_x: "128" main: true }
    deterministic: true)");
  return MakeFamily(manifest, "source");
}

// Every one of them has to be looked at.
constexpr char kEntangled[] = R"(constraints { expr: "A + B + C + D + E + F + G + H + I != 45" reason: "not 45" })";

class SpaceBoundsTest : public TunerTest {
 protected:
  v1::PreflightResponse Preflight(std::shared_ptr<const space::Family> family) {
    const catalog::Host host = catalog::FakeHost(Families(std::move(family)));
    v1::PreflightRequest request;
    *request.mutable_problem() = TuneRequest().problem();
    request.set_device_id("cuda:0");
    request.set_list_variants(true);
    return *catalog::Preflight(request, host, store_);
  }
  static v1::TuneRequest RandomRequest(int trials) {
    v1::TuneRequest request = TuneRequest();
    request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
    request.mutable_strategy()->set_max_trials(trials);
    request.mutable_strategy()->set_seed(7);
    return request;
  }
};

TEST_F(SpaceBoundsTest, ExhaustiveTuningSaysThatItIsTooLargeAndWhatToDo) {
  Start(Families(Billion()));
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_EQ(done.error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(done.error().message(),
              HasSubstr("tiles has 1000000000 variants for b1.h1.q128.d64.f16 on cuda:0; a "
                        "tuning tries at most 50000 one by one: have another strategy draw from "
                        "them (--strategy guided)"));
  Start(Families(Billion(kEntangled)));
  EXPECT_THAT(Tune().error().message(), HasSubstr("tiles has more than "));
}

TEST_F(SpaceBoundsTest, RandomTuningDrawsFromABillion) {
  Start(Families(Billion()));
  const v1::Operation done = Tune(RandomRequest(5));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.progress().trials_done(), 5);
  EXPECT_TRUE(done.tune().has_incumbent());
}

TEST_F(SpaceBoundsTest, RandomTuningDrawsFromWhatCannotBeCounted) {
  Start(Families(Billion(kEntangled)));
  const v1::Operation done = Tune(RandomRequest(5));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.progress().trials_done(), 5);
  EXPECT_TRUE(done.tune().has_incumbent());
}

TEST_F(SpaceBoundsTest, TheSameSeedDrawsTheSameOnes) {
  Start(Families(Billion()));
  Tune(RandomRequest(5));
  const std::map<std::string, int> first = Tries();
  EXPECT_EQ(first.size(), 5u);
  const v1::Operation again = Tune(RandomRequest(5));
  EXPECT_EQ(again.progress().trials_reused(), 5);
  EXPECT_EQ(Tries(), first);
}

TEST_F(SpaceBoundsTest, CountingDoesNotList) {
  const v1::PreflightResponse counted = Preflight(Billion());
  ASSERT_EQ(counted.families_size(), 1);
  EXPECT_TRUE(counted.families(0).feasible());
  EXPECT_EQ(counted.families(0).variants(), 1'000'000'000);
  EXPECT_FALSE(counted.families(0).lower_bound());
  EXPECT_EQ(counted.variants_size(), 0);
  EXPECT_THAT(counted.warnings(0),
              HasSubstr("1000000000 variants: more than the 50000 that an exhaustive tuning tries one by one"));
  EXPECT_FALSE(counted.has_estimate());

  const v1::PreflightResponse bounded = Preflight(Billion(kEntangled));
  EXPECT_TRUE(bounded.families(0).feasible());
  EXPECT_TRUE(bounded.families(0).lower_bound());
  EXPECT_GT(bounded.families(0).variants(), 50000);
}

TEST_F(SpaceBoundsTest, AListOfVariantsHasAnEndAndSaysSo) {
  std::string rules = R"(constraints { expr: "E <= 2" reason: "r" })";
  for (const char* fixed : {"F", "G", "H", "I"}) {
    absl::StrAppend(&rules, "constraints { expr: \"", fixed, " == 1\" reason: \"r\" }");
  }
  const v1::PreflightResponse listed = Preflight(Billion(rules));
  EXPECT_EQ(listed.families(0).variants(), 20'000);
  EXPECT_EQ(listed.families(0).compiles(), 1);
  EXPECT_EQ(listed.variants_size(), 10'000);
  EXPECT_THAT(listed.warnings(0), HasSubstr("only the first 10000 variants are listed"));
}

TEST_F(SpaceBoundsTest, CountingEndsWhenNobodyWaits) {
  const catalog::Host host = catalog::FakeHost(Families(Billion(kEntangled)));
  v1::PreflightRequest request;
  *request.mutable_problem() = TuneRequest().problem();
  request.set_device_id("cuda:0");
  EXPECT_EQ(catalog::Preflight(request, host, store_, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(SpaceBoundsTest, AGuessIsFoundWithoutCounting) {
  const catalog::Host host = catalog::FakeHost(Families(Billion(kEntangled)));
  auto results = catalog::Results::Load(store_, host);
  v1::GetBestRequest request;
  *request.mutable_problem() = TuneRequest().problem();
  request.set_device_id("cuda:0");
  request.set_policy(v1::POLICY_HOT);
  const auto best = (*results)->GetBest(request);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_HEURISTIC);
}

TEST_F(SpaceBoundsTest, AProblemThatNoMemoryHoldsIsRefusedAtOnce) {
  Start(Families(MakeFamily(R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    launches { entry: "attention" grid_x: "1" block_x: "128" main: true })",
                            "source")));
  const absl::Status refused = tuner_->Tune(TuneRequest("b1.h1.q16777216.d64.f16")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("needs at least 36.0 GiB of cuda:0's memory"));
}

}  // namespace
}  // namespace attune::jobs
