#include "server/service/validate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;

catalog::Host OneDeviceOneFamily() {
  catalog::Host host;
  host.devices.emplace_back().set_id("cuda:0");
  auto family = std::make_shared<space::Family>();
  family->manifest.set_name("attention_simt");
  auto& parameter = *family->manifest.add_parameters();
  parameter.set_name("BLOCK_M");
  parameter.add_values(32);
  parameter.add_values(64);
  host.families.Add(family);
  return host;
}

v1::TuneRequest GoodTune() {
  v1::TuneRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  return request;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Validate, EnergyIsMeasuredOfRunsThatFollowOneAnother) {
  v1::TuneRequest request = GoodTune();
  request.set_energy(true);
  request.set_policy(v1::POLICY_L2_WARM);
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  request.set_policy(v1::POLICY_COLD);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("energy is true, with policy cold"));
  request.clear_energy();
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  request.set_objective(v1::OBJECTIVE_EDP);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())),
              HasSubstr("objective is OBJECTIVE_EDP, with policy cold"));
}

TEST(Validate, SeveralCardsAreOfOneClassThatIsHere) {
  catalog::Host host = OneDeviceOneFamily();
  host.devices.emplace_back().set_id("cuda:1");
  host.devices[1].set_uuid("GPU-1");
  for (v1::Device& device : host.devices) device.set_class_alias("l4");
  host.devices.emplace_back().set_id("opencl:0");
  host.devices[2].set_class_alias("pthread");
  const auto refused = [&](int64_t cards, const std::string& device) {
    v1::TuneRequest request = GoodTune();
    request.set_cards(cards);
    request.set_device_id(device);
    const absl::Status status = Validate(request, host);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return Message(status);
  };
  v1::TuneRequest request = GoodTune();
  request.set_cards(2);
  ASSERT_TRUE(Validate(request, host).ok());
  EXPECT_EQ(request.device_id(), "l4") << "the class of the first";
  EXPECT_EQ(refused(3, ""), "cards is 3; allowed: 1 to 2, the cards of class 'l4' here");
  EXPECT_EQ(refused(-1, "l4"), "cards is -1; allowed: 1 to 2, the cards of class 'l4' here");
  EXPECT_EQ(refused(2, "pthread"), "cards is 2; allowed: 1 to 1, the cards of class 'pthread' here");
  const std::string kOneCard =
      "cards is 2, and device_id 'cuda:0' names one card; allowed: 1, or as device_id the "
      "card's class, 'l4'";
  EXPECT_EQ(refused(2, "cuda:0"), kOneCard);
  EXPECT_THAT(refused(2, "GPU-1"), HasSubstr("names one card"));
  request.set_device_id("h200");
  EXPECT_TRUE(absl::IsNotFound(Validate(request, host)));
  request.set_device_id("cuda:0");
  request.set_cards(1);
  EXPECT_TRUE(Validate(request, host).ok());
}

TEST(Validate, FillsInWhatATuneRequestLeavesOut) {
  v1::TuneRequest request = GoodTune();
  ASSERT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  EXPECT_EQ(request.device_id(), "cuda:0");
  EXPECT_EQ(request.policy(), v1::POLICY_HOT);
  EXPECT_EQ(request.strategy().kind(), v1::Strategy::KIND_EXHAUSTIVE);
}

TEST(Validate, WhatNoFamilyUnderstandsIsRefusedByNameBesideTheParametersThereAre) {
  catalog::Host host = OneDeviceOneFamily();
  v1::TuneRequest tune = GoodTune();
  tune.add_where("BLOCK_M == 64");
  EXPECT_TRUE(Validate(tune, host).ok());
  tune.add_where("BLOCK == 64");
  v1::PreflightRequest preflight;
  *preflight.mutable_problem() = tune.problem();
  *preflight.mutable_where() = tune.where();
  v1::SweepRequest sweep;
  sweep.mutable_plan()->add_shapes()->add_problem("b1.h1.q8.d64.f16");
  *sweep.mutable_plan()->mutable_where() = tune.where();
  for (const absl::Status& status : {Validate(tune, host), Validate(preflight, host), Validate(sweep, host)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), HasSubstr("where[1] is 'BLOCK == 64'"));
    EXPECT_THAT(Message(status), HasSubstr("the parameters of attention_simt are BLOCK_M"));
  }
}

TEST(Validate, SanitizersHaveTurnsInALoopAlone) {
  v1::SubmitRequest request;
  *request.add_problems() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  request.set_sanitize_every(3);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("sanitize_every is 3, and loop is empty"));
  request.set_loop("tiles");
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  for (const int bad : {-1, 1001}) {
    request.set_sanitize_every(bad);
    EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("allowed: 0 (never) to 1000"));
  }
}

TEST(Validate, ARequiredVariantIsWholeAndKnown) {
  v1::TuneRequest request = GoodTune();
  request.add_required()->set_text("attention_simt:BLOCK_M=32");
  ASSERT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  EXPECT_EQ(request.required(0).parameters(0).value(), 32);
  request.mutable_required(0)->set_text("attention_simt:BLOCK_M=33");
  request.mutable_required(0)->clear_parameters();
  EXPECT_EQ(Validate(request, OneDeviceOneFamily()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Validate, AnEffortIsOfASearchThatKeepsIt) {
  v1::TuneRequest request = GoodTune();
  v1::Strategy& strategy = *request.mutable_strategy();
  strategy.set_effort(v1::Strategy::EFFORT_QUICK);
  for (const auto kind : {v1::Strategy::KIND_GUIDED, v1::Strategy::KIND_EVOLUTION}) {
    strategy.set_kind(kind);
    EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  }
  for (const auto kind : {v1::Strategy::KIND_EXHAUSTIVE, v1::Strategy::KIND_RANDOM}) {
    strategy.set_kind(kind);
    EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())),
                HasSubstr(absl::StrCat("strategy.effort is EFFORT_QUICK, with ", v1::Strategy::Kind_Name(kind))));
  }
  strategy.set_kind(v1::Strategy::KIND_EXHAUSTIVE);
  strategy.set_effort(v1::Strategy::EFFORT_EXHAUSTIVE);
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
}

TEST(Validate, ASweepsEffortIsOfASearchThatKeepsIt) {
  v1::SweepRequest request;
  v1::SweepPlan& plan = *request.mutable_plan();
  plan.add_shapes()->add_problem("b1.h1.q8.d64.f16");
  plan.set_effort(v1::Strategy::EFFORT_QUICK);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())),
              HasSubstr("plan.effort is EFFORT_QUICK, with KIND_EXHAUSTIVE; allowed: with KIND_GUIDED"));
  plan.mutable_budget()->set_trials_per_problem(3);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("with KIND_RANDOM"));
  plan.set_strategy(v1::Strategy::KIND_GUIDED);
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
}

TEST(Validate, ASweepsObjectiveByEnergyIsNotOfColdRuns) {
  v1::SweepRequest request;
  v1::SweepPlan& plan = *request.mutable_plan();
  plan.add_shapes()->add_problem("b1.h1.q8.d64.f16");
  plan.set_objective(v1::OBJECTIVE_ENERGY);
  EXPECT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  plan.set_policy(v1::POLICY_COLD);
  EXPECT_EQ(Message(Validate(request, OneDeviceOneFamily())),
            "plan.objective is OBJECTIVE_ENERGY, with policy cold; allowed: with hot and l2-warm");
}

TEST(Validate, ProblemsToSeedFromAreMadeCanonical) {
  v1::TuneRequest request = GoodTune();
  request.add_seed_from("b1.h2.kvh2.q8.kv8.d64.f16");
  ASSERT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  EXPECT_EQ(request.seed_from(0), "b1.h2.q8.d64.f16");
  request.add_seed_from("b1.h2");
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("seed_from[1]: "));
}

TEST(Validate, RefusesWorkWithoutADevice) {
  v1::TuneRequest request = GoodTune();
  const absl::Status status = Validate(request, catalog::Host());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Validate, AnUnknownDeviceIsNamedBesideThoseThereAre) {
  v1::TuneRequest request = GoodTune();
  request.set_device_id("cuda:9");
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("'cuda:9'; available devices: cuda:0"));
}

TEST(Validate, AnUnknownFamilyIsNamedBesideThoseThereAre) {
  v1::TuneRequest request = GoodTune();
  request.add_families("attention_fast");
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())),
              HasSubstr("'attention_fast' is unknown; available: attention_simt"));
}

TEST(Validate, RefusesValuesOutsideTheirRange) {
  v1::TuneRequest request = GoodTune();
  request.mutable_strategy()->set_max_trials(-1);
  EXPECT_THAT(Message(Validate(request, OneDeviceOneFamily())), HasSubstr("strategy.max_trials is -1"));
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

TEST(Validate, AProfileIsOfOneTrialOneProblemOrOneSubmission) {
  const catalog::Host host = OneDeviceOneFamily();
  v1::ProfileRequest request;
  EXPECT_THAT(Message(Validate(request, host)), HasSubstr("code names nothing; allowed: code.trial alone;"));
  request.mutable_code()->set_trial("trials/1");
  EXPECT_TRUE(Validate(request, host).ok());
  EXPECT_EQ(request.device_id(), "") << "the trial's own";
  *request.mutable_code()->mutable_problem() = GoodTune().problem();
  EXPECT_THAT(Message(Validate(request, host)), HasSubstr("code names a trial and more"));
  request.mutable_code()->clear_trial();
  request.mutable_code()->mutable_variant()->set_text("attention_simt:BLOCK_M=64");
  EXPECT_TRUE(Validate(request, host).ok());
  EXPECT_EQ(request.code().policy(), v1::POLICY_HOT);
  EXPECT_EQ(request.code().variant().family(), "attention_simt");
  request.mutable_code()->set_submission("submissions/7");
  EXPECT_THAT(Message(Validate(request, host)), HasSubstr("code.variant stands beside a submission"));
  request.mutable_code()->clear_submission();
  request.mutable_code()->clear_problem();
  EXPECT_THAT(Message(Validate(request, host)), HasSubstr("code.variant stands alone"));
  v1::SanitizeRequest sanitize;
  sanitize.mutable_code()->set_trial("trials/1");
  sanitize.set_device_id("cuda:9");
  EXPECT_THAT(Message(Validate(sanitize, host)), HasSubstr("device_id is 'cuda:9'"));
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

TEST(Validate, ABaselinesTimesAreInOrder) {
  const auto error = [](double median, double low, double high) {
    v1::RecordBaselineRequest request;
    v1::Baseline& baseline = *request.mutable_baseline();
    *baseline.mutable_problem() = GoodTune().problem();
    baseline.set_contender("sdpa");
    baseline.set_median_us(median);
    baseline.set_low_us(low);
    baseline.set_high_us(high);
    return Message(Validate(request, OneDeviceOneFamily()));
  };
  EXPECT_EQ(error(5, 0, 0), "");
  EXPECT_EQ(error(5, 5, 5), "");
  EXPECT_EQ(error(5, 4, 6), "");
  EXPECT_THAT(error(1e300, 0, 0), HasSubstr("median_us is 1e+300; allowed: positive microseconds up to 1e+12"));
  EXPECT_THAT(error(5, -1, 0),
              HasSubstr("low_us is -1 and baseline.high_us 0; allowed is a range around median_us, 5"));
  EXPECT_THAT(error(5, 6, 7), HasSubstr("low_us is 6"));
  EXPECT_THAT(error(5, 4, 4.5), HasSubstr("high_us 4.5"));
  EXPECT_THAT(error(5, 4, 1e13), HasSubstr("up to 1e+12"));
}

TEST(Validate, FiltersMatchHoweverTheProblemIsSpelled) {
  v1::TrialFilter filter;
  filter.set_problem("h1.b1.q8.kv8.d64.f16");
  ASSERT_TRUE(Validate(filter, catalog::Host()).ok());
  EXPECT_EQ(filter.problem(), "b1.h1.q8.d64.f16");
}

TEST(Validate, OnlyTrialsThatDidNotEndOkAreRetried) {
  v1::RetryTrialsRequest request;
  EXPECT_THAT(Message(Validate(request, catalog::Host())), HasSubstr("filter.verdicts is empty; allowed: INFEASIBLE"));
  for (const v1::Verdict verdict : {v1::VERDICT_OK, v1::VERDICT_LOST, static_cast<v1::Verdict>(77)}) {
    request.mutable_filter()->clear_verdicts();
    request.mutable_filter()->add_verdicts(verdict);
    EXPECT_THAT(Message(Validate(request, catalog::Host())), HasSubstr("; allowed: INFEASIBLE, COMPILE_ERROR"))
        << verdict;
  }
  const auto refused = [&](int verdict) {
    request.mutable_filter()->clear_verdicts();
    request.mutable_filter()->add_verdicts(static_cast<v1::Verdict>(verdict));
    return Message(Validate(request, catalog::Host()));
  };
  EXPECT_THAT(refused(v1::VERDICT_OK), HasSubstr("has OK, which is not tried again but with tune's retry_known; "));
  EXPECT_THAT(refused(v1::VERDICT_LOST), HasSubstr("has LOST, which is always tried again; "));
  EXPECT_THAT(refused(77), HasSubstr("has 77, which is no verdict; "));
  request.mutable_filter()->clear_verdicts();
  request.mutable_filter()->add_verdicts(v1::VERDICT_CRASHED);
  request.mutable_filter()->set_problem("h1.b1.q8.kv8.d64.f16");
  ASSERT_TRUE(Validate(request, catalog::Host()).ok());
  EXPECT_EQ(request.filter().problem(), "b1.h1.q8.d64.f16");
}

// Two cards of one class.
catalog::Host TwoCards() {
  catalog::Host host = OneDeviceOneFamily();
  host.devices.push_back(host.devices.front());
  host.devices[1].set_id("cuda:1");
  for (v1::Device& device : host.devices) {
    device.set_uuid("GPU-" + device.id());
    device.set_fingerprint("an L4");
    device.set_class_alias("l4");
  }
  return host;
}

TEST(Validate, WorkMayNameACardOrAClassAndUnknownNamesListBoth) {
  for (const char* name : {"cuda:1", "GPU-cuda:1", "l4"}) {
    v1::TuneRequest request = GoodTune();
    request.set_device_id(name);
    EXPECT_TRUE(Validate(request, TwoCards()).ok()) << name;
    EXPECT_EQ(request.device_id(), name) << "which card it is to be, is decided when it is queued";
  }
  v1::TuneRequest request = GoodTune();
  request.set_device_id("h200");
  EXPECT_THAT(Message(Validate(request, TwoCards())), HasSubstr("available devices: cuda:0 (l4), cuda:1 (l4)"));
}

TEST(Validate, TimesBelongToOneCard) {
  v1::RecordBaselineRequest request;
  v1::Baseline& baseline = *request.mutable_baseline();
  *baseline.mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  baseline.set_contender("torch");
  baseline.set_median_us(5);
  baseline.set_device_id("GPU-cuda:1");
  ASSERT_TRUE(Validate(request, TwoCards()).ok());
  EXPECT_EQ(baseline.device_id(), "cuda:1");
  baseline.set_device_id("l4");
  EXPECT_THAT(Message(Validate(request, TwoCards())), HasSubstr("allowed: cuda:0, cuda:1"));
  baseline.set_device_id("cuda:9");
  EXPECT_THAT(Message(Validate(request, TwoCards())), HasSubstr("available devices: cuda:0 (l4), cuda:1 (l4)"));
  EXPECT_TRUE(Validate(request, catalog::Host()).ok()) << "a server without a device has the results of others";
}

TEST(Validate, ABaselineWithoutAnIntervalGetsNone) {
  v1::RecordBaselineRequest request;
  v1::Baseline& baseline = *request.mutable_baseline();
  *baseline.mutable_problem() = GoodTune().problem();
  baseline.set_contender("sdpa");
  baseline.set_median_us(5);
  ASSERT_TRUE(Validate(request, OneDeviceOneFamily()).ok());
  EXPECT_EQ(baseline.low_us(), 0);
  EXPECT_EQ(baseline.high_us(), 0);
}

TEST(Validate, AFilterOfTrialsMayNameAClassOrAUuid) {
  v1::TrialFilter filter;
  filter.set_device_id("l4");
  ASSERT_TRUE(Validate(filter, TwoCards()).ok());
  EXPECT_EQ(filter.device_class(), "an L4");
  EXPECT_EQ(filter.device_id(), "");
  filter.Clear();
  filter.set_device_id("GPU-cuda:1");
  ASSERT_TRUE(Validate(filter, TwoCards()).ok());
  EXPECT_EQ(filter.device_uuid(), "GPU-cuda:1");
  filter.Clear();
  filter.set_device_id("cuda:9");
  ASSERT_TRUE(Validate(filter, TwoCards()).ok());
  EXPECT_EQ(filter.device_id(), "cuda:9") << "one that was here once";
}

TEST(Validate, RetryingOnADeviceRetriesWhatBarsItsClass) {
  v1::RetryTrialsRequest request;
  request.mutable_filter()->add_verdicts(v1::VERDICT_CRASHED);
  request.mutable_filter()->set_device_id("cuda:1");
  ASSERT_TRUE(Validate(request, TwoCards()).ok());
  EXPECT_EQ(request.filter().device_class(), "an L4");
  EXPECT_EQ(request.filter().device_id(), "");
}

TEST(PageSize, HasADefaultAndALimit) {
  EXPECT_EQ(*PageSize(0), 50);
  EXPECT_EQ(*PageSize(1000), 1000);
  EXPECT_EQ(*PageSize(1001), 1000);
  EXPECT_THAT(Message(PageSize(-1).status()), HasSubstr("page_size is -1"));
}

TEST(ValidateSweep, TakesSeveralDevicesOrAll) {
  v1::SweepRequest request;
  request.mutable_plan()->add_shapes()->add_problem("b1.h1.q128.d64.f16");
  for (const auto& [given, taken] : {std::pair("cuda:0, cuda:1", "cuda:0,cuda:1"), {"l4", "l4"}, {"all", "all"}}) {
    request.mutable_plan()->set_device_id(given);
    EXPECT_EQ(Validate(request, TwoCards()), absl::OkStatus()) << given;
    EXPECT_EQ(request.plan().device_id(), taken);
  }
  request.mutable_plan()->set_device_id("cuda:0,cuda:9");
  EXPECT_THAT(Message(Validate(request, TwoCards())), HasSubstr("'cuda:9'; available devices: cuda:0"));
  request.mutable_plan()->set_device_id("cuda:0,");
  EXPECT_THAT(Message(Validate(request, TwoCards())), HasSubstr("which has an empty name"));
}

// A gateway, unless `devices` are its own, beside two hosts that have an l4 each.
catalog::Host Fleet(std::vector<v1::Device> devices = {}, bool other_class = false) {
  catalog::Host host = OneDeviceOneFamily();
  std::vector<v1::Host> hosts(2);
  for (size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].set_name(i == 0 ? "hosts/a" : "hosts/b");
    hosts[i].set_state(v1::Host::STATE_LIVE);
    v1::Device& device = *hosts[i].add_devices();
    device = host.devices.front();
    device.set_uuid(i == 0 ? "GPU-a" : "GPU-b");
    device.set_model("NVIDIA L4");
    device.set_fingerprint("an L4");
    if (i == 0 || !other_class) continue;
    device.set_model("NVIDIA H200");
    device.set_fingerprint("an H200");
  }
  host.fleet = std::make_shared<catalog::Fleet>();
  host.fleet->Set(hosts);
  host.devices = std::move(devices);
  return host;
}

TEST(ValidateFleet, WorkMayBeForAClassOrACardThatALiveHostHas) {
  const catalog::Host host = Fleet();
  const std::string alias = host.fleet->Classes().at(0).device->id();
  for (const char* name : {alias.c_str(), "an L4", "GPU-b", "hosts/a/devices/cuda:0"}) {
    v1::TuneRequest request = GoodTune();
    request.set_device_id(name);
    EXPECT_EQ(Validate(request, host), absl::OkStatus()) << name;
    EXPECT_EQ(request.device_id(), name);
  }
  v1::TuneRequest request = GoodTune();
  request.clear_device_id();
  EXPECT_EQ(Validate(request, host), absl::OkStatus());
  EXPECT_EQ(request.device_id(), alias) << "the one class that there is";
}

TEST(ValidateFleet, AClassThatNobodyHasIsRefusedWithThoseThereAre) {
  v1::TuneRequest request = GoodTune();
  request.set_device_id("a100");
  const absl::Status status = Validate(request, Fleet());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("device_id is 'a100'; available here: none; classes of all hosts: "));
  EXPECT_THAT(Message(status), HasSubstr("(hosts/a, hosts/b)"));
}

TEST(ValidateFleet, ACardOfAHostThatIsAwayIsRefusedWithItsHostsState) {
  catalog::Host host = Fleet();
  v1::Host away;
  away.set_name("hosts/c");
  away.set_state(v1::Host::STATE_LOST);
  away.add_devices()->set_id("cuda:0");
  v1::Host live;
  live.set_name("hosts/d");
  live.set_state(v1::Host::STATE_LIVE);
  live.add_devices()->set_id("cuda:1");
  host.fleet->Set({away, live});
  v1::TuneRequest request = GoodTune();
  request.set_device_id("hosts/c/devices/cuda:0");
  EXPECT_THAT(Message(Validate(request, host)),
              HasSubstr("device_id is 'hosts/c/devices/cuda:0', a card of hosts/c, which is LOST; available here: "));
  request.set_device_id("hosts/d/devices/cuda:0");
  EXPECT_THAT(Message(Validate(request, host)), HasSubstr("device_id is 'hosts/d/devices/cuda:0'; available here: "));
}

TEST(ValidateFleet, WithoutANameOfSeveralClassesItIsThisHostsDeviceOrNone) {
  v1::TuneRequest request = GoodTune();
  request.clear_device_id();
  EXPECT_EQ(Validate(request, Fleet({}, /*other_class=*/true)).code(), absl::StatusCode::kNotFound);
  request.clear_device_id();
  EXPECT_EQ(Validate(request, Fleet(OneDeviceOneFamily().devices, /*other_class=*/true)), absl::OkStatus());
  EXPECT_EQ(request.device_id(), OneDeviceOneFamily().devices.front().id());
}

TEST(ValidateFleet, WithNoDeviceAnywhereThereIsNoWork) {
  catalog::Host host = Fleet();
  host.fleet = std::make_shared<catalog::Fleet>();
  v1::TuneRequest request = GoodTune();
  EXPECT_EQ(Validate(request, host).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ValidateFleet, AFilterOfTrialsMayNameAClassOfOtherHosts) {
  const catalog::Host host = Fleet();
  v1::TrialFilter filter;
  filter.set_device_id(host.fleet->Classes().at(0).device->id());
  ASSERT_TRUE(Validate(filter, host).ok());
  EXPECT_EQ(filter.device_class(), "an L4");
  EXPECT_EQ(filter.device_id(), "");
}

}  // namespace
}  // namespace attune::service
