#include "server/catalog/result_log.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/logged.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Incumbent IncumbentOf(const char* variant, double us) {
  v1::Incumbent incumbent;
  incumbent.set_problem_text("P");
  incumbent.set_device_id("cuda:0");
  incumbent.set_policy(v1::POLICY_HOT);
  incumbent.set_why("faster");
  incumbent.mutable_trial()->mutable_variant()->set_text(variant);
  incumbent.mutable_trial()->mutable_timing()->set_median_us(us);
  return incumbent;
}

TEST(ResultLog, APromotionHasBeforeAndAfter) {
  const v1::Incumbent now = IncumbentOf("a:B=1", 106.25);
  EXPECT_THAT(Logged([&] { LogPromotion(IncumbentOf("a:B=2", 224), now); }),
              HasSubstr(" promoted problem=P device=cuda:0 policy=HOT variant=\"a:B=1\" us=106.25 before=\"a:B=2\" "
                        "before_us=224.00 why=faster "));
  EXPECT_THAT(Logged([&] { LogPromotion(std::nullopt, now); }), Not(HasSubstr("before")));
}

TEST(ResultLog, AVariantThatStaysIsNotPromoted) {
  v1::Incumbent now = IncumbentOf("a:B=1", 106.25);
  EXPECT_THAT(Logged([&] { LogPromotion(IncumbentOf("a:B=1", 224), now); }),
              HasSubstr(" incumbent timed again problem=P "));
  now.set_pinned(true);
  EXPECT_THAT(Logged([&] { LogPromotion(IncumbentOf("a:B=1", 224), now); }), HasSubstr(" promoted problem=P "));
}

TEST(ResultLog, ARollBackSaysWhatIsServedAgain) {
  EXPECT_THAT(Logged([&] { LogRollBack(IncumbentOf("a:B=2", 224), "a wrong result"); }),
              HasSubstr(" rolled back problem=P device=cuda:0 policy=HOT variant=\"a:B=2\" us=224.00 "
                        "why=\"a wrong result\"\n"));
}

}  // namespace
}  // namespace attune::catalog
