#include "server/catalog/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A problem of 6 variants; more of them in the fixture's header.
class PreflightTest : public jobs::TunerTest {
 protected:
  PreflightTest() { today_.devices = {device_.device()}; }

  absl::StatusOr<v1::PreflightResponse> Ask(const std::string& problem = kProblem,
                                            const std::string& device = "cuda:0") {
    v1::PreflightRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    request.set_device_id(device);
    return Preflight(request, today_, store_);
  }

  // A trial of today that ended `second` seconds after some time.
  void Append(const std::string& variant, const std::string& job, int second) {
    v1::Trial trial;
    trial.set_problem_text(kProblem);
    trial.set_device_id("cuda:0");
    trial.mutable_variant()->set_family("tiles");
    trial.mutable_variant()->set_text(variant);
    trial.set_policy(v1::POLICY_HOT);
    trial.set_verdict(v1::VERDICT_OK);
    trial.mutable_dependencies()->set_source_hash("source one");
    trial.mutable_dependencies()->set_toolchain("fakec 1.0");
    trial.mutable_dependencies()->set_driver("580.1");
    trial.mutable_dependencies()->set_device_fingerprint("an L4");
    trial.set_job(job);
    trial.mutable_finish_time()->set_seconds(1'000'000'000 + second);
    ASSERT_TRUE(store_.AppendTrial(trial, {}).ok());
  }

  Host today_ = FakeHost();
};

TEST_F(PreflightTest, CountsVariantsAndCompiles) {
  const auto preflight = Ask();
  ASSERT_TRUE(preflight.ok()) << preflight.status();
  ASSERT_EQ(preflight->families_size(), 1) << "reference and floor are none that tuning tries";
  EXPECT_TRUE(preflight->families(0).feasible());
  EXPECT_EQ(preflight->families(0).variants(), 6);
  EXPECT_EQ(preflight->families(0).compiles(), 3);
  EXPECT_EQ(preflight->families(0).known(), 0);
}

TEST_F(PreflightTest, KnowsWhatWasTuned) {
  Start();
  Tune();
  EXPECT_EQ(Ask()->families(0).known(), 6);
  EXPECT_EQ(Ask("b1.h1.q256.d64.f16")->families(0).known(), 0);
}

TEST_F(PreflightTest, KnowsNothingOfOtherDependencies) {
  Append("tiles:BLOCK=16,SPLITS=1", "operations/1", 0);
  EXPECT_EQ(Ask()->families(0).known(), 1);
  today_.backends[0].set_compiler("fakec 2.0");
  EXPECT_EQ(Ask()->families(0).known(), 0);
  today_.backends[0].set_compiler("fakec 1.0");
  today_.devices[0].set_driver("581");
  EXPECT_EQ(Ask()->families(0).known(), 0);
  today_.devices[0].set_driver("580.1");
  today_.families = Families(SearchFamily("source two"));
  EXPECT_EQ(Ask()->families(0).known(), 0);
}

TEST_F(PreflightTest, EstimatesFromTheNewestJobsTrials) {
  EXPECT_FALSE(Ask()->has_estimate());
  Append("tiles:BLOCK=16,SPLITS=1", "operations/1", 0);
  EXPECT_FALSE(Ask()->has_estimate()) << "one trial has no distance to another";
  Append("tiles:BLOCK=16,SPLITS=2", "operations/1", 100);
  EXPECT_EQ(Ask()->estimate().seconds(), 4 * 100) << "four of six are left";
  Append("tiles:BLOCK=32,SPLITS=1", "operations/2", 1000);
  EXPECT_FALSE(Ask()->has_estimate());
  Append("tiles:BLOCK=32,SPLITS=2", "operations/2", 1007);
  EXPECT_EQ(Ask()->estimate().seconds(), 2 * 7);
  Append("tiles:BLOCK=64,SPLITS=1", "operations/2", 1014);
  Append("tiles:BLOCK=64,SPLITS=2", "operations/2", 1021);
  EXPECT_FALSE(Ask()->has_estimate()) << "nothing is left to try";
}

TEST_F(PreflightTest, WarnsOfGridsTooSmallForTheDevice) {
  EXPECT_THAT(Ask()->warnings(), ElementsAre("the largest grid any variant launches is 16 CTAs for 58 SMs: part of the "
                                             "device stays idle"));
  EXPECT_THAT(Ask("b1.h1.q1024.d64.f16")->warnings(), IsEmpty());
}

TEST_F(PreflightTest, WarnsWhereNothingIsFeasible) {
  const auto preflight = Ask("b1.h1.q2048.d64.f16");
  ASSERT_TRUE(preflight.ok());
  EXPECT_FALSE(preflight->families(0).feasible());
  EXPECT_THAT(preflight->families(0).reason(), HasSubstr("seq_q at most 1024"));
  EXPECT_THAT(preflight->warnings(), ElementsAre("no kernel family has a variant for this problem on this device"));
}

TEST_F(PreflightTest, WarnsThatAProfileRunsNothing) {
  const auto preflight = Ask("b1.h1.q1024.d64.f16", "profile:l4");
  ASSERT_TRUE(preflight.ok()) << preflight.status();
  EXPECT_EQ(preflight->device().id(), "profile:l4");
  EXPECT_THAT(preflight->warnings(), ElementsAre(HasSubstr("profile:l4 is a set of limits")));
}

TEST_F(PreflightTest, NamesTheDeviceThatIsNotHere) {
  const absl::Status status = Ask(kProblem, "cuda:7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuda:7"));
}

}  // namespace
}  // namespace attune::catalog
