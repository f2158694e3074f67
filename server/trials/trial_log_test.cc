#include "server/trials/trial_log.h"

#include "gtest/gtest.h"

namespace attune::trials {
namespace {

TEST(TrialLog, TrialsAreFinePrint) {
  ::testing::internal::CaptureStderr();
  LogTrial(v1::Trial());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace attune::trials
