#include "server/service/validate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;

Known OneDeviceOneFamily() {
  Known known;
  known.devices.emplace_back().set_id("cuda:0");
  auto family = std::make_shared<space::Family>();
  family->manifest.set_name("attention_simt");
  auto& parameter = *family->manifest.add_parameters();
  parameter.set_name("BLOCK_M");
  parameter.add_values(32);
  parameter.add_values(64);
  known.families.push_back(family);
  return known;
}

v1::TuneRequest GoodTune() {
  v1::TuneRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  return request;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Validate, FillsInWhatATuneRequestLeavesOut) {
  v1::TuneRequest request = GoodTune();
  ASSERT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  EXPECT_EQ(request.device_id(), "cuda:0");
  EXPECT_EQ(request.policy(), v1::POLICY_HOT);
  EXPECT_EQ(request.strategy().kind(), v1::Strategy::KIND_EXHAUSTIVE);
}

TEST(Validate, RefusesWorkWithoutADevice) {
  v1::TuneRequest request = GoodTune();
  const absl::Status status = Validate(request, Known());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Validate, AnUnknownDeviceIsNamedBesideThoseThereAre) {
  v1::TuneRequest request = GoodTune();
  request.set_device_id("cuda:9");
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("'cuda:9'; here are cuda:0"));
}

TEST(Validate, AnUnknownFamilyIsNamedBesideThoseThereAre) {
  v1::TuneRequest request = GoodTune();
  request.add_families("attention_fast");
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())),
              HasSubstr("'attention_fast' is unknown; there are attention_simt"));
}

TEST(Validate, RefusesValuesOutsideTheirRange) {
  v1::TuneRequest request = GoodTune();
  request.mutable_strategy()->set_max_trials(-1);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("strategy.max_trials is -1"));
  request = GoodTune();
  request.mutable_strategy()->mutable_max_time()->set_seconds(-1);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("strategy.max_time is negative"));
  request = GoodTune();
  request.set_request_id(std::string(129, 'x'));
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("request_id has 129 characters"));
  request = GoodTune();
  request.mutable_problem()->set_head_dim(-3);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("head_dim is -3"));
}

TEST(Validate, AVariantMayComeAsTextOrAsParameters) {
  v1::EvaluateVariantRequest request;
  *request.mutable_problem() = GoodTune().problem();
  request.mutable_variant()->set_family("attention_simt");
  auto& parameter = *request.mutable_variant()->add_parameters();
  parameter.set_name("BLOCK_M");
  parameter.set_value(64);
  ASSERT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  EXPECT_EQ(request.variant().text(), "attention_simt:BLOCK_M=64");
}

TEST(Validate, ASweepNeedsShapes) {
  v1::SweepRequest request;
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("plan.shapes is empty"));
}

TEST(Validate, ABaselineNeedsANameAndATime) {
  v1::RecordBaselineRequest request;
  *request.mutable_baseline()->mutable_problem() = GoodTune().problem();
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("contender is empty"));
  request.mutable_baseline()->set_contender("sdpa");
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("median_us is 0"));
}

TEST(Validate, FiltersMatchHoweverTheProblemIsSpelled) {
  v1::TrialFilter filter;
  filter.set_problem("h1.b1.q8.kv8.d64.f16");
  ASSERT_TRUE(Validate(filter).ok());
  EXPECT_EQ(filter.problem(), "b1.h1.q8.d64.f16");
}

TEST(PageSize, HasADefaultAndALimit) {
  EXPECT_EQ(*PageSize(0), 50);
  EXPECT_EQ(*PageSize(1000), 1000);
  EXPECT_THAT(Message(PageSize(1001).status()), HasSubstr("page_size is 1001"));
  EXPECT_THAT(Message(PageSize(-1).status()), HasSubstr("page_size is -1"));
}

}  // namespace
}  // namespace attune::service
