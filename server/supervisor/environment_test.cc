#include "server/supervisor/environment.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::supervisor {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Environment, ScrubbedKeepsWhatCompilersAndDriversAreSetUpBy) {
  setenv("ATTUNE_TOKEN", "secret", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  setenv("SSH_AUTH_SOCK", "x", 1);
  setenv("POCL_DEVICES", "pthread", 1);
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "1", 1);
  setenv("CUDA_HOME", "/opt/cuda", 1);
  const std::vector<std::string> scrubbed = Variables(Environment::kScrubbed);
  EXPECT_THAT(scrubbed, Contains("POCL_DEVICES=pthread"));
  EXPECT_THAT(scrubbed, Contains("CUDA_HOME=/opt/cuda"));
  EXPECT_THAT(scrubbed, Contains(StartsWith("PATH=")).Times(1));
  for (const char* name : {"ATTUNE_TOKEN", "AWS_SECRET", "SSH_AUTH", "POCL_WORK_GROUP_SPECIALIZATION"}) {
    EXPECT_THAT(scrubbed, Not(Contains(StartsWith(name))));
    EXPECT_THAT(Variables(Environment::kInherited), Contains(StartsWith(name)));
  }
}

}  // namespace
}  // namespace attune::supervisor
