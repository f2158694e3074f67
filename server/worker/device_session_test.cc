#include "server/worker/device_session.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/fake_device.h"
#include "server/verify/testing/fake_kernels.h"

namespace attune::worker {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using verify::CandidateOf;
using worker::v1::PlayOffResponse;
using worker::v1::Request;
using worker::v1::Response;
using worker::v1::TrialResponse;

class DeviceSessionTest : public ::testing::Test {
 protected:
  DeviceSessionTest()
      : problem_(*ParseProblem("b1.h1.q8.d16.f16")), session_(attune::v1::Device(), [this] { return Open(); }) {}

  // A fake with what the test has set up; the session owns it.
  absl::StatusOr<std::unique_ptr<device::Device>> Open() {
    ++opened_;
    auto device = std::make_unique<verify::FakeDevice>();
    prepare_ = verify::PrepareOn(*device, problem_);
    device->kernels["exact"] = [this, exact = device->kernels["exact"]](const verify::FakeArguments& arguments) {
      ++references_;
      return exact(arguments);
    };
    device->inspects = inspects_;
    device->properties.set_l2_bytes(l2_bytes_);
    if (spoils_) device->fake_inspector.spoil_tally = [](auto& tally) { tally = {}; };
    device->kernels["right"] = verify::RightKernel(problem_);
    device->kernels["faster"] = verify::RightKernel(problem_);
    device->kernels["wrong"] = [](const verify::FakeArguments&) { return absl::OkStatus(); };
    device->kernels["faults"] = [](const verify::FakeArguments&) { return absl::AbortedError("illegal address"); };
    device->kernels["wrong on seed 77"] = [this](const verify::FakeArguments& arguments) {
      absl::Status status = verify::RightKernel(problem_)(arguments);
      const verify::Tensors seen = verify::MakeInputs(problem_, verify::Distribution::kNormal, 77);
      if (*arguments.q.as<uint16_t>() == seen.q[0]) *arguments.o.as<uint16_t>() = 0x4400;
      return status;
    };
    // Both behave as long as O holds the poison of a check.
    device->kernels["idle when timed"] = [this](const verify::FakeArguments& arguments) {
      return Poisoned(arguments) ? verify::RightKernel(problem_)(arguments) : absl::OkStatus();
    };
    // Slow enough for one run a sample; does nothing for outputs other than those that it was timed on first.
    device->kernels["knows its O when timed"] = [this](const verify::FakeArguments& arguments) {
      if (!Poisoned(arguments) && known_o_ == nullptr) known_o_ = arguments.o.as<uint16_t>();
      const bool other = !Poisoned(arguments) && arguments.o.as<uint16_t>() != known_o_;
      return other ? absl::OkStatus() : verify::RightKernel(problem_)(arguments);
    };
    device->seconds["knows its O when timed"] = [] { return 1e-3; };
    device->kernels["changes K when timed"] = [this](const verify::FakeArguments& arguments) {
      const bool timed = !Poisoned(arguments);
      absl::Status status = verify::RightKernel(problem_)(arguments);
      if (timed) *arguments.k.as<uint16_t>() = 0x3333;
      return status;
    };
    device->kernels["seldom wrong"] = [this](const verify::FakeArguments& arguments) {
      absl::Status status = verify::RightKernel(problem_)(arguments);
      if (++seldom_ % 61 == 0) *arguments.o.as<uint16_t>() = 0x4c00;
      return status;
    };
    device->seconds["seldom wrong"] = [] { return 5e-6; };
    device->kernels["empty"] = [](const verify::FakeArguments&) { return absl::OkStatus(); };
    device->seconds["faster"] = [] { return 5e-6; };
    device->seconds["erratic"] = [this] { return ++erratic_ % 2 * 20e-6 + 10e-6; };
    device->kernels["erratic"] = verify::RightKernel(problem_);
    device->kernels["big"] = verify::RightKernel(problem_);
    device->bind_errors["big"] = absl::FailedPreconditionError("too much shared memory");
    device->telemetry.power_w = 70;
    device_ = device.get();
    return device;
  }

  static bool Poisoned(const verify::FakeArguments& arguments) {
    const uint16_t o = *arguments.o.as<uint16_t>();
    return o == 0xFFFF || o == 0x5A5A;
  }

  Response Prepare(uint64_t seed = 1) {
    verify::FakeDevice scratch;
    Request request;
    *request.mutable_prepare() = verify::PrepareOn(scratch, problem_, seed);
    return session_.Handle(request);
  }
  Response TrialResult(const std::string& artifact, bool check_only = false, double leader_us = 0) {
    Request request;
    *request.mutable_trial()->mutable_candidate() = CandidateOf(artifact);
    request.mutable_trial()->set_policy(attune::v1::POLICY_HOT);
    request.mutable_trial()->set_check_only(check_only);
    request.mutable_trial()->set_leader_us(leader_us);
    return session_.Handle(request);
  }
  TrialResponse Trial(const std::string& artifact, bool check_only = false, double leader_us = 0) {
    const Response response = TrialResult(artifact, check_only, leader_us);
    EXPECT_EQ(response.error_message(), "");
    return response.trial();
  }
  Response PlayOffResult(const std::vector<std::string>& artifacts, uint64_t fresh_seed, int rounds = 0) {
    Request request;
    for (const std::string& artifact : artifacts) *request.mutable_play_off()->add_candidates() = CandidateOf(artifact);
    request.mutable_play_off()->set_policy(attune::v1::POLICY_COLD);
    request.mutable_play_off()->set_fresh_seed(fresh_seed);
    request.mutable_play_off()->set_rounds(rounds);
    return session_.Handle(request);
  }
  PlayOffResponse PlayOff(const std::vector<std::string>& artifacts, uint64_t fresh_seed, int rounds = 0) {
    const Response response = PlayOffResult(artifacts, fresh_seed, rounds);
    EXPECT_EQ(response.error_message(), "");
    return response.play_off();
  }

  // A further cycle.
  Response Reloaded(const std::vector<std::string>& artifacts) {
    Request request;
    for (const std::string& artifact : artifacts) *request.mutable_play_off()->add_candidates() = CandidateOf(artifact);
    request.mutable_play_off()->set_policy(attune::v1::POLICY_COLD);
    request.mutable_play_off()->set_reload(true);
    return session_.Handle(request);
  }

  Problem problem_;
  worker::v1::PrepareRequest prepare_;
  DeviceSession session_;
  verify::FakeDevice* device_ = nullptr;
  int opened_ = 0;
  int erratic_ = 0;
  int64_t l2_bytes_ = 0;  // of 0 one input set is timed
  const uint16_t* known_o_ = nullptr;
  int seldom_ = 0;
  int references_ = 0;     // runs of the exact reference kernel
  bool inspects_ = false;  // as the device that is opened next
  bool spoils_ = false;
};

TEST_F(DeviceSessionTest, DescribesWithoutOpeningTheDevice) {
  Request request;
  request.mutable_describe();
  EXPECT_EQ(session_.Handle(request).describe().devices_size(), 1);
  EXPECT_EQ(opened_, 0);
}

TEST_F(DeviceSessionTest, ATrialNeedsAPreparedProblem) {
  const Response response = TrialResult("right");
  EXPECT_EQ(response.error_code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
}

TEST_F(DeviceSessionTest, ARightCandidateIsTimed) {
  ASSERT_EQ(Prepare().error_message(), "");
  const TrialResponse trial = Trial("right");
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_OK) << trial.detail();
  EXPECT_NEAR(trial.timing().median_us(), 10, 1e-9);
  EXPECT_EQ(trial.timing().power_w(), 70);
  EXPECT_TRUE(trial.timing().settled());
  EXPECT_EQ(trial.accuracy().cases(), 5);
}

TEST_F(DeviceSessionTest, AWrongCandidateIsNot) {
  ASSERT_EQ(Prepare().error_message(), "");
  const TrialResponse trial = Trial("wrong");
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_WRONG_RESULT);
  EXPECT_FALSE(trial.has_timing());
  EXPECT_TRUE(device_->hot_sets.empty());
}

TEST_F(DeviceSessionTest, OnlyHotTakesTheCopiesOfTheInputsInTurn) {
  l2_bytes_ = 1 << 20;
  ASSERT_EQ(Prepare().error_message(), "");
  Request request;
  *request.mutable_trial()->mutable_candidate() = CandidateOf("right");
  request.mutable_trial()->set_policy(attune::v1::POLICY_HOT);
  const TrialResponse hot = session_.Handle(request).trial();
  ASSERT_EQ(hot.verdict(), attune::v1::VERDICT_OK) << hot.detail();
  EXPECT_GT(hot.timing().input_sets(), 1);
  EXPECT_THAT(device_->hot_sets, Contains(Gt(1)));
  device_->hot_sets.clear();

  request.mutable_trial()->set_policy(attune::v1::POLICY_L2_WARM);
  const TrialResponse warm = session_.Handle(request).trial();
  ASSERT_EQ(warm.verdict(), attune::v1::VERDICT_OK) << warm.detail();
  EXPECT_EQ(warm.timing().input_sets(), 1);
  // Timed on one; what ran last, to be looked at, on three.
  ASSERT_FALSE(device_->hot_sets.empty());
  device_->hot_sets.pop_back();
  EXPECT_THAT(device_->hot_sets, Each(1));
}

TEST_F(DeviceSessionTest, AColdSampleLiesAnywhereWithinTheClocksStep) {
  ASSERT_EQ(Prepare().error_message(), "");
  device_->cold_resolution = absl::Microseconds(4);
  Request request;
  *request.mutable_trial()->mutable_candidate() = CandidateOf("right");
  request.mutable_trial()->set_policy(attune::v1::POLICY_COLD);
  const TrialResponse trial = session_.Handle(request).trial();
  ASSERT_TRUE(trial.has_timing()) << trial.detail();
  // The fake device takes 10 us.
  EXPECT_NE(trial.timing().min_us(), 10);
  EXPECT_GE(trial.timing().min_us(), 8);
  EXPECT_LE(trial.timing().quantiles_us(32), 12);
  EXPECT_GE(trial.timing().high_us() - trial.timing().low_us(), 4);
}

TEST_F(DeviceSessionTest, WhatMisbehavesWhenTimedHasItsVerdictAndNoTiming) {
  l2_bytes_ = 1 << 20;
  ASSERT_EQ(Prepare().error_message(), "");
  for (const auto& [artifact, verdict] : {std::pair{"idle when timed", attune::v1::VERDICT_WRONG_RESULT},
                                          std::pair{"knows its O when timed", attune::v1::VERDICT_WRONG_RESULT},
                                          std::pair{"changes K when timed", attune::v1::VERDICT_OUT_OF_BOUNDS}}) {
    ASSERT_EQ(Trial(artifact, /*check_only=*/true).verdict(), attune::v1::VERDICT_OK);
    const TrialResponse trial = Trial(artifact);
    EXPECT_EQ(trial.verdict(), verdict) << trial.detail();
    EXPECT_THAT(trial.detail(), HasSubstr("while it was timed: "));
    EXPECT_FALSE(trial.has_timing());
    EXPECT_EQ(Trial("right").verdict(), attune::v1::VERDICT_OK);
  }
}

TEST_F(DeviceSessionTest, APlayOffLooksAtWhatWasTimed) {
  l2_bytes_ = 1 << 20;
  ASSERT_EQ(Prepare().error_message(), "");
  for (const char* artifact : {"idle when timed", "knows its O when timed"}) {
    const PlayOffResponse response = PlayOff({artifact, "right"}, /*fresh_seed=*/77);
    EXPECT_EQ(response.results(0).verdict(), attune::v1::VERDICT_WRONG_RESULT) << artifact;
    EXPECT_FALSE(response.results(0).has_timing());
    EXPECT_EQ(response.results(1).verdict(), attune::v1::VERDICT_OK) << response.results(1).detail();
  }
}

TEST_F(DeviceSessionTest, OfContestantsTimedInTurnNobodyIsBlamedForAChangedInputUntilEachIsAlone) {
  ASSERT_EQ(Prepare().error_message(), "");
  const Response together = PlayOffResult({"changes K when timed", "right"}, /*fresh_seed=*/77);
  EXPECT_EQ(together.error_code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(together.error_message(), HasSubstr("one of 2 contestants"));
  EXPECT_EQ(PlayOff({"changes K when timed"}, 77).results(0).verdict(), attune::v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_EQ(PlayOff({"right"}, 77).results(0).verdict(), attune::v1::VERDICT_OK);
}

TEST_F(DeviceSessionTest, CheckOnlyDoesNotTime) {
  ASSERT_EQ(Prepare().error_message(), "");
  const TrialResponse trial = Trial("right", /*check_only=*/true);
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_OK);
  EXPECT_FALSE(trial.has_timing());
}

TEST_F(DeviceSessionTest, ACandidateThatIsMuchSlowerThanTheLeaderIsSlowAfterAQuickLook) {
  ASSERT_EQ(Prepare().error_message(), "");
  const TrialResponse trial = Trial("right", false, /*leader_us=*/5);
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_SLOW);
  EXPECT_EQ(trial.detail(),
            "takes 2.00 times as long as what it raced against; one of 5 input distributions was checked");
  EXPECT_TRUE(trial.timing().given_up());
  EXPECT_EQ(trial.timing().samples(), 1);
  EXPECT_DOUBLE_EQ(trial.timing().median_us(), 10);
  EXPECT_EQ(trial.accuracy().cases(), 1);
}

TEST_F(DeviceSessionTest, ACandidateThatMayBeAsFastAsTheLeaderIsCheckedAltogether) {
  ASSERT_EQ(Prepare().error_message(), "");
  const TrialResponse trial = Trial("right", false, /*leader_us=*/9.5);
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_OK) << trial.detail();
  EXPECT_EQ(trial.accuracy().cases(), 5);
  EXPECT_TRUE(trial.timing().given_up());
  EXPECT_EQ(trial.timing().samples(), 5);
}

TEST_F(DeviceSessionTest, WhatIsWrongIsNotSlow) {
  ASSERT_EQ(Prepare().error_message(), "");
  EXPECT_EQ(Trial("wrong", false, /*leader_us=*/5).verdict(), attune::v1::VERDICT_WRONG_RESULT);
}

TEST_F(DeviceSessionTest, WhenAskedToASlowCandidateIsCheckedAltogether) {
  ASSERT_EQ(Prepare().error_message(), "");
  Request request;
  *request.mutable_trial()->mutable_candidate() = CandidateOf("right");
  request.mutable_trial()->set_policy(attune::v1::POLICY_HOT);
  request.mutable_trial()->set_leader_us(5);
  request.mutable_trial()->set_check_all(true);
  const TrialResponse trial = session_.Handle(request).trial();
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_OK);
  EXPECT_EQ(trial.accuracy().cases(), 5);
}

TEST_F(DeviceSessionTest, OnACpuTimesAreTooUncertainForAQuickLook) {
  attune::v1::Device cpu;
  cpu.set_warp_size(1);
  DeviceSession session(cpu, [this] { return Open(); });
  verify::FakeDevice scratch;
  Request request;
  *request.mutable_prepare() = verify::PrepareOn(scratch, problem_, 1);
  ASSERT_EQ(session.Handle(request).error_message(), "");
  *request.mutable_trial()->mutable_candidate() = CandidateOf("right");
  request.mutable_trial()->set_policy(attune::v1::POLICY_HOT);
  request.mutable_trial()->set_leader_us(5);
  EXPECT_EQ(session.Handle(request).trial().verdict(), attune::v1::VERDICT_OK);
}

TEST_F(DeviceSessionTest, OnACpuTimesThatDoNotSettleAreTheMachinesFault) {
  attune::v1::Device cpu;
  cpu.set_warp_size(1);
  DeviceSession session(cpu, [this] { return Open(); });
  verify::FakeDevice scratch;
  Request request;
  *request.mutable_prepare() = verify::PrepareOn(scratch, problem_, 1);
  ASSERT_EQ(session.Handle(request).error_message(), "");
  *request.mutable_trial()->mutable_candidate() = CandidateOf("erratic");
  request.mutable_trial()->set_policy(attune::v1::POLICY_HOT);
  const TrialResponse trial = session.Handle(request).trial();
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_OK);
  EXPECT_FALSE(trial.timing().settled());
}

TEST_F(DeviceSessionTest, TimesThatDoNotSettleAreUnstable) {
  ASSERT_EQ(Prepare().error_message(), "");
  const TrialResponse trial = Trial("erratic");
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_UNSTABLE);
  EXPECT_THAT(trial.detail(), HasSubstr("do not settle"));
}

TEST_F(DeviceSessionTest, ATimeInWhichTheInputsCannotHaveBeenReadIsUnstable) {
  attune::v1::Device slow;
  slow.set_model("Slow");
  slow.set_memory_bandwidth_gbs(1);  // the inputs' 1,024 bytes take 0.8 us
  DeviceSession session(slow, [this] {
    auto device = Open();
    device_->seconds["right"] = [] { return 0.1e-6; };
    return device;
  });
  verify::FakeDevice scratch;
  Request request;
  *request.mutable_prepare() = verify::PrepareOn(scratch, problem_, 1);
  ASSERT_EQ(session.Handle(request).error_message(), "");
  *request.mutable_trial()->mutable_candidate() = CandidateOf("right");
  request.mutable_trial()->set_policy(attune::v1::POLICY_COLD);
  const TrialResponse trial = session.Handle(request).trial();
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_UNSTABLE);
  EXPECT_THAT(trial.detail(), HasSubstr("reading the inputs takes at the peak rate of Slow"));
}

TEST_F(DeviceSessionTest, AnotherProcessOnTheDeviceIsNotTheVariantsFault) {
  ASSERT_EQ(Prepare().error_message(), "");
  device_->telemetry.contended = true;
  const TrialResponse trial = Trial("erratic");
  EXPECT_EQ(trial.verdict(), attune::v1::VERDICT_OK) << trial.detail();
  EXPECT_TRUE(trial.timing().contended());
}

TEST_F(DeviceSessionTest, AFaultOfTheDeviceIsAborted) {
  ASSERT_EQ(Prepare().error_message(), "");
  const Response response = TrialResult("faults");
  EXPECT_EQ(response.error_code(), static_cast<int>(absl::StatusCode::kAborted));
  EXPECT_EQ(response.error_message(), "illegal address");
}

TEST_F(DeviceSessionTest, APlayOffTimesAllAndKeepsTheirOrder) {
  ASSERT_EQ(Prepare().error_message(), "");
  const PlayOffResponse response = PlayOff({"right", "faster", "big"}, /*fresh_seed=*/0, /*rounds=*/9);
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_NEAR(response.results(0).timing().median_us(), 10, 1e-9);
  EXPECT_NEAR(response.results(1).timing().median_us(), 5, 1e-9);
  EXPECT_EQ(response.results(0).timing().samples(), 9);
  EXPECT_EQ(response.results(0).rounds_us_size(), 9);
  EXPECT_NEAR(response.results(1).rounds_us(3), 5, 1e-9);
  EXPECT_EQ(response.results(2).verdict(), attune::v1::VERDICT_INFEASIBLE);
}

TEST_F(DeviceSessionTest, APlayOffOnFreshDataTimesOnlyWhatIsRightOnThem) {
  ASSERT_EQ(Prepare(1).error_message(), "");
  ASSERT_EQ(Trial("wrong on seed 77", true).verdict(), attune::v1::VERDICT_OK);
  const PlayOffResponse response = PlayOff({"wrong on seed 77", "right"}, /*fresh_seed=*/77);
  EXPECT_EQ(response.results(0).verdict(), attune::v1::VERDICT_WRONG_RESULT);
  EXPECT_FALSE(response.results(0).has_timing());
  EXPECT_EQ(response.results(1).verdict(), attune::v1::VERDICT_OK);
  EXPECT_TRUE(response.results(1).has_timing());
}

TEST_F(DeviceSessionTest, APlayOffThatIsHeldAgainPreparesNothingTwice) {
  ASSERT_EQ(Prepare(1).error_message(), "");
  const int once = references_;
  PlayOff({"right", "faster"}, /*fresh_seed=*/77);
  EXPECT_EQ(references_, 2 * once);
  PlayOff({"faster"}, /*fresh_seed=*/77);
  EXPECT_EQ(references_, 2 * once);
  PlayOff({"faster"}, /*fresh_seed=*/78);
  EXPECT_EQ(references_, 3 * once);
}

TEST_F(DeviceSessionTest, TrialsAreComparedOnTheDeviceAndThePlayOffsOnTheHost) {
  inspects_ = true;
  ASSERT_EQ(Prepare().error_message(), "");
  device_->fake_inspector.compared = 0;
  EXPECT_EQ(Trial("right").verdict(), attune::v1::VERDICT_OK);
  EXPECT_GT(device_->fake_inspector.compared, 0);
  ASSERT_EQ(Prepare(77).error_message(), "");
  device_->fake_inspector.compared = 0;
  EXPECT_EQ(PlayOff({"right"}, /*fresh_seed=*/77).results(0).verdict(), attune::v1::VERDICT_OK);
  EXPECT_EQ(device_->fake_inspector.compared, 0);
}

TEST_F(DeviceSessionTest, AnInspectorThatDisagreesWithTheHostIsNotAsked) {
  inspects_ = spoils_ = true;
  ASSERT_EQ(Prepare().error_message(), "");
  device_->fake_inspector.compared = 0;
  EXPECT_EQ(Trial("right").verdict(), attune::v1::VERDICT_OK);
  EXPECT_EQ(device_->fake_inspector.compared, 0);
}

TEST_F(DeviceSessionTest, TheHostComparesWhenToldSo) {
  inspects_ = true;
  DeviceSession session(
      attune::v1::Device(), [this] { return Open(); }, verify::PreparedProblem::Look::kOnHost);
  verify::FakeDevice scratch;
  Request request;
  *request.mutable_prepare() = verify::PrepareOn(scratch, problem_, 1);
  ASSERT_EQ(session.Handle(request).error_message(), "");
  EXPECT_EQ(device_->fake_inspector.compared, 0);
}

TEST_F(DeviceSessionTest, ManyRunsFindWhatIsSeldomWrong) {
  ASSERT_EQ(Prepare().error_message(), "");
  Request request;
  for (const char* artifact : {"right", "seldom wrong", "big"}) {
    *request.mutable_play_off()->add_candidates() = CandidateOf(artifact);
  }
  request.mutable_play_off()->set_many_runs(true);
  const PlayOffResponse response = session_.Handle(request).play_off();
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).verdict(), attune::v1::VERDICT_OK) << response.results(0).detail();
  EXPECT_EQ(response.results(1).verdict(), attune::v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(response.results(1).detail(), ContainsRegex("^inputs '.*': run [0-9]+: "));
  EXPECT_EQ(response.results(2).verdict(), attune::v1::VERDICT_INFEASIBLE);
  EXPECT_FALSE(response.results(0).has_timing());
}

TEST_F(DeviceSessionTest, MeasuresEnergyOfEachOrSaysWhyNot) {
  l2_bytes_ = 1 << 20;
  ASSERT_EQ(Prepare().error_message(), "");
  Request request;
  for (const char* artifact : {"right", "faster", "big"}) {
    *request.mutable_play_off()->add_candidates() = CandidateOf(artifact);
  }
  request.mutable_play_off()->set_policy(attune::v1::POLICY_HOT);
  request.mutable_play_off()->set_energy(true);
  PlayOffResponse response = session_.Handle(request).play_off();
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_FALSE(response.results(0).has_energy());
  EXPECT_EQ(response.results(0).detail(), "this device does not count its energy");
  EXPECT_EQ(response.results(2).verdict(), attune::v1::VERDICT_INFEASIBLE);

  device_->joules = [this] { return 400 * device_->hot_seconds; };
  response = session_.Handle(request).play_off();
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_NEAR(response.results(0).energy().joules(), 400 * 10e-6, 1e-9) << response.results(0).detail();
  EXPECT_NEAR(response.results(1).energy().joules(), 400 * 5e-6, 1e-9);
  EXPECT_FALSE(response.results(0).has_timing());
  EXPECT_GT(device_->hot_sets.back(), 1U);
  request.mutable_play_off()->set_policy(attune::v1::POLICY_L2_WARM);
  response = session_.Handle(request).play_off();
  EXPECT_TRUE(response.results(0).has_energy());
  EXPECT_EQ(device_->hot_sets.back(), 1U);
}

TEST_F(DeviceSessionTest, AFurtherCycleLoadsCodeAndAllocatesMemoryAnew) {
  ASSERT_EQ(Prepare().error_message(), "");
  PlayOff({"right", "faster"}, /*fresh_seed=*/77);
  const int loads = device_->loads;
  const size_t allocated = device_->allocated_ever;
  PlayOff({"right", "faster"}, /*fresh_seed=*/0);
  EXPECT_EQ(device_->loads, loads);
  const PlayOffResponse response = Reloaded({"right", "faster"}).play_off();
  EXPECT_EQ(response.results(1).verdict(), attune::v1::VERDICT_OK) << response.results(1).detail();
  EXPECT_EQ(device_->loads, loads + 2);
  EXPECT_EQ(device_->allocated_ever - allocated, device_->allocated);
}

TEST_F(DeviceSessionTest, AFurtherCycleComputesNoReferenceAgain) {
  ASSERT_EQ(Prepare().error_message(), "");
  PlayOff({"right", "faster"}, /*fresh_seed=*/77);
  const int references = references_;
  EXPECT_EQ(Reloaded({"right", "faster"}).play_off().results(0).verdict(), attune::v1::VERDICT_OK);
  EXPECT_EQ(references_, references);
}

TEST_F(DeviceSessionTest, AfterAReloadThatFailsTheProblemIsPreparedAgain) {
  ASSERT_EQ(Prepare().error_message(), "");
  const int references = references_;
  const size_t limit = std::exchange(device_->memory_limit, 0);
  EXPECT_EQ(Reloaded({"right"}).error_code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(device_->allocated, 0);
  device_->memory_limit = limit;
  EXPECT_EQ(Trial("right", /*check_only=*/true).verdict(), attune::v1::VERDICT_OK);
  EXPECT_EQ(references_, 2 * references);
}

TEST_F(DeviceSessionTest, ReleaseGivesTheDeviceBackAndTheNextTrialTakesItAgain) {
  ASSERT_EQ(Prepare().error_message(), "");
  Request release;
  release.mutable_release();
  EXPECT_TRUE(session_.Handle(release).has_release());
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(Trial("right", true).verdict(), attune::v1::VERDICT_OK);
  EXPECT_EQ(opened_, 2);
}

TEST_F(DeviceSessionTest, AProblemThatCannotBePreparedLeavesNone) {
  ASSERT_EQ(Prepare().error_message(), "");
  Request bad;
  bad.mutable_prepare()->mutable_problem()->set_batch(-1);
  EXPECT_EQ(session_.Handle(bad).error_code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(TrialResult("right").error_code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
}

TEST_F(DeviceSessionTest, TheFloorNeedsNoProblem) {
  Request request;
  request.mutable_floor()->set_artifact("empty");
  request.mutable_floor()->set_entry("empty");
  const Response response = session_.Handle(request);
  EXPECT_EQ(response.error_message(), "");
  EXPECT_NEAR(response.floor().timing().median_us(), 10, 1e-9);
}

}  // namespace
}  // namespace attune::worker
