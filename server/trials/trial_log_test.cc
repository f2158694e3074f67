#include "server/trials/trial_log.h"

#include "gtest/gtest.h"
#include "server/base/testing/logged.h"

namespace attune::trials {
namespace {

TEST(TrialLog, TrialsAreFinePrint) {
  EXPECT_EQ(Logged([] { LogTrial(v1::Trial()); }), "");
}

}  // namespace
}  // namespace attune::trials
