// attune profile and attune sanitize.
#include "client/cli/testing/fake_world.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

class ProfileCliTest : public CliTest {};

TEST_F(ProfileCliTest, ProfileShowsTheCountersAndWhatBounds) {
  fake.EndsWith(attune::testing::EndedProfile());
  EXPECT_EQ(Run({"profile", problem}), 0) << err;
  EXPECT_THAT(out, HasSubstr("dram_throughput    91.2 %"));
  EXPECT_THAT(out, HasSubstr("1234"));
  EXPECT_THAT(out, HasSubstr("stalls: long_scoreboard 75 %"));
  EXPECT_THAT(out, HasSubstr("bound by DRAM, at 91 % of its peak"));
  EXPECT_EQ(fake.last_profile().code().problem().head_dim(), 64);
  EXPECT_EQ(fake.last_profile().code().policy(), v1::POLICY_HOT);
  EXPECT_FALSE(fake.last_profile().code().has_variant());
  EXPECT_EQ(fake.last_profile().device_id(), "") << "the trial's own";
}

TEST_F(ProfileCliTest, ProfileTakesTrialsVariantsAndSubmissions) {
  EXPECT_EQ(Run({"profile", "12", "--detach"}), 0) << err;
  EXPECT_EQ(fake.last_profile().code().trial(), "trials/12");
  EXPECT_EQ(Run({"profile", problem, "--variant", "tiles:BLOCK=64", "--device", "cuda:1", "--detach"}), 0);
  EXPECT_EQ(fake.last_profile().code().variant().text(), "tiles:BLOCK=64");
  EXPECT_EQ(fake.last_profile().device_id(), "cuda:1");
  EXPECT_EQ(Run({"profile", "submissions/7", "--problem", problem, "--detach"}), 0);
  EXPECT_EQ(fake.last_profile().code().submission(), "submissions/7");
  EXPECT_TRUE(fake.last_profile().code().has_problem());
  EXPECT_EQ(Run({"profile", "submissions/7", "--detach"}), 0);
  EXPECT_FALSE(fake.last_profile().code().has_problem());
}

TEST_F(ProfileCliTest, WhatContradictsItselfIsNotSent) {
  EXPECT_EQ(Run({"profile", "trials/1", "--variant", "x"}), 2);
  EXPECT_THAT(err, HasSubstr("--variant is given with trials/1"));
  EXPECT_EQ(Run({"profile", problem, "--problem", problem}), 2);
  EXPECT_EQ(Run({"sanitize", problem, "--tool", "leaks"}), 2);
  EXPECT_THAT(err, HasSubstr("--tool is 'leaks'; allowed: memcheck, racecheck, synccheck, initcheck"));
  EXPECT_EQ(fake.calls("Profile") + fake.calls("Sanitize"), 0);
}

TEST_F(ProfileCliTest, WhatTheHostLacksIsOneLine) {
  fake.FailNext(1, {grpc::StatusCode::FAILED_PRECONDITION, "this host has no ncu"});
  EXPECT_EQ(Run({"profile", problem}), 1);
  EXPECT_EQ(err, "attune: this host has no ncu\n");
}

TEST_F(ProfileCliTest, FindingsOfSanitizersHaveAnExitCode) {
  fake.EndsWith(attune::testing::EndedSanitizing(true));
  EXPECT_EQ(Run({"sanitize", problem}), 0) << err;
  EXPECT_THAT(out, HasSubstr("memcheck  clean"));
  fake.EndsWith(attune::testing::EndedSanitizing(false));
  EXPECT_EQ(Run({"sanitize", problem, "--tool", "memcheck"}), 5);
  EXPECT_THAT(out, HasSubstr("memcheck  2 errors\n  Invalid __global__ read of size 2 bytes; at attention+0x60"));
  ASSERT_EQ(fake.last_sanitize().tools_size(), 1);
  EXPECT_EQ(fake.last_sanitize().tools(0), v1::SANITIZER_TOOL_MEMCHECK);
}

TEST_F(ProfileCliTest, JsonHasCountersByNameAndFindings) {
  fake.EndsWith(attune::testing::EndedProfile());
  EXPECT_EQ(Run({"profile", problem, "--format=json"}), 0);
  const Json profile = JsonLines().back();
  EXPECT_EQ(profile["type"], "profile_result");
  EXPECT_EQ(profile["bound"], "DRAM, at 91 % of its peak");
  EXPECT_EQ(profile["trial"]["profile"]["kernels"][0]["counters"]["dram_throughput"], 0.912);
  EXPECT_EQ(profile["trial"]["profile"]["kernels"][0]["stalls"]["long_scoreboard"], 0.75);
  EXPECT_EQ(profile["trial"]["sanitizing"], nullptr);
  fake.EndsWith(attune::testing::EndedSanitizing(false));
  EXPECT_EQ(Run({"sanitize", problem, "--format=json"}), 5);
  const Json found = JsonLines().back();
  EXPECT_EQ(found["type"], "sanitize_result");
  EXPECT_EQ(found["clean"], false);
  EXPECT_EQ(found["trial"]["sanitizing"]["runs"][0]["tool"], "memcheck");
  EXPECT_EQ(found["trial"]["sanitizing"]["runs"][0]["incomplete"], nullptr);
}

}  // namespace
}  // namespace attune::cli
