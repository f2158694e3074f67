#include "server/profile/subject.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/fake_host.h"
#include "server/store/testing/fake_store.h"
#include "server/trials/trial.h"
#include "server/trials/tuning_key.h"

namespace attune::profile {
namespace {

using ::testing::HasSubstr;

constexpr char kProblem[] = "b1.h1.q128.d64.f16";

class SubjectTest : public ::testing::Test {
 protected:
  SubjectTest() {
    *code_.mutable_problem() = ToProto(*ParseProblem(kProblem));
    code_.set_policy(v1::POLICY_HOT);  // as the service normalises it
  }

  std::string Append(const std::string& variant, bool code = true) {
    const auto key = trials::MakeTuningKey(*ParseProblem(kProblem), host_.devices[0], v1::POLICY_HOT, host_);
    v1::Trial trial = trials::NewTrial(*key, *space::ParseVariant(variant, host_.families), "operations/1");
    trial.set_verdict(v1::VERDICT_OK);
    trial.mutable_timing()->set_median_us(10);
    if (code) trial.set_artifact_sha256("abc");
    trial.mutable_recipe()->add_launches()->set_entry("attention");
    return *store_.AppendTrial(trial, {});
  }
  absl::StatusOr<std::string> Find(const v1::Submission* submission = nullptr, const std::string& device = "") {
    const absl::StatusOr<v1::Trial> found = FindSubject(code_, device, submission, store_, host_);
    if (!found.ok()) return found.status();
    return found->name();
  }

  catalog::Host host_ = catalog::FakeHost();
  store::FakeStore store_;
  v1::ProfiledCode code_;
};

TEST_F(SubjectTest, OfATrialItIsThat) {
  const std::string name = Append("tiles:BLOCK=16,SPLITS=1");
  code_.Clear();
  code_.set_trial(name);
  EXPECT_EQ(Find().value(), name);
  code_.set_trial("trials/99");
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SubjectTest, OfAVariantItIsItsNewestTrialOfToday) {
  Append("tiles:BLOCK=16,SPLITS=1");
  const std::string name = Append("tiles:BLOCK=16,SPLITS=1");
  code_.mutable_variant()->set_family("tiles");
  code_.mutable_variant()->set_text("tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(Find().value(), name);
  code_.mutable_variant()->set_text("tiles:BLOCK=64,SPLITS=1");
  EXPECT_THAT(std::string(Find().status().message()),
              HasSubstr("`attune evaluate b1.h1.q128.d64.f16 tiles:BLOCK=64,SPLITS=1` makes one"));
}

TEST_F(SubjectTest, OfAProblemItIsWhatIsServed) {
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("nobody has tuned b1.h1.q128.d64.f16 on cuda:0"));
  const std::string name = Append("tiles:BLOCK=16,SPLITS=1");
  Append("tiles:BLOCK=32,SPLITS=1");
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(name);
  ASSERT_TRUE(store_.Promote(incumbent, "", {}).ok());
  EXPECT_EQ(Find().value(), name);
  EXPECT_EQ(Find(nullptr, "cuda:7").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SubjectTest, OfASubmissionItIsThatOfItsRow) {
  const std::string name = Append("tiles:BLOCK=16,SPLITS=1");
  v1::Submission submission;
  submission.set_name("submissions/7");
  v1::SubmitResult::Row& row = *submission.mutable_result()->add_rows();
  row.set_problem(kProblem);
  row.mutable_trial()->set_name(name);
  EXPECT_EQ(Find(&submission).value(), name);
  code_.clear_problem();
  EXPECT_EQ(Find(&submission).value(), name) << "it has one problem";
  submission.mutable_result()->add_rows()->set_problem("b1.h1.q64.d64.f16");
  EXPECT_THAT(std::string(Find(&submission).status().message()), HasSubstr("code.problem is empty"));
  *code_.mutable_problem() = ToProto(*ParseProblem("b1.h1.q64.d64.f16"));
  EXPECT_THAT(std::string(Find(&submission).status().message()), HasSubstr("was not tried for b1.h1.q64.d64.f16"));
}

TEST_F(SubjectTest, WhatHasNoCodeIsNotRun) {
  code_.Clear();
  code_.set_trial(Append("tiles:BLOCK=16,SPLITS=1", /*code=*/false));
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("has no code to run"));
}

TEST_F(SubjectTest, RunsOnACardOfTheTrialsClass) {
  const v1::Trial trial = *store_.GetTrial(Append("tiles:BLOCK=16,SPLITS=1"));
  EXPECT_EQ(DeviceFor(trial, "", host_).value(), "cuda:0");
  host_.devices[0].set_id("cuda:1");
  EXPECT_EQ(DeviceFor(trial, "", host_).value(), "cuda:1") << "another of its class";
  EXPECT_EQ(DeviceFor(trial, "cuda:1", host_).value(), "cuda:1");
  host_.devices[0].set_fingerprint("another");
  EXPECT_THAT(std::string(DeviceFor(trial, "", host_).status().message()), HasSubstr("no device of its class is here"));
  EXPECT_THAT(std::string(DeviceFor(trial, "cuda:1", host_).status().message()),
              HasSubstr("is of another class of device"));
}

TEST_F(SubjectTest, ACpuHasNoCounters) {
  const v1::Trial trial = *store_.GetTrial(Append("tiles:BLOCK=16,SPLITS=1"));
  host_.devices[0].set_backend(v1::BACKEND_OPENCL);
  EXPECT_EQ(DeviceFor(trial, "", host_).status().message(),
            "cuda:0 (NVIDIA L4) is a device of OpenCL: Nsight Compute and compute-sanitizer know CUDA devices alone");
}

}  // namespace
}  // namespace attune::profile
