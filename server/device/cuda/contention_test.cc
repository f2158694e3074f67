#include "server/device/cuda/contention.h"

#include <vector>

#include "gtest/gtest.h"

namespace attune::device::cuda {
namespace {

constexpr unsigned kSelf = 100;
constexpr unsigned kOther = 200;

NvmlProcessInfo Holds(unsigned pid) { return {pid, 0, 0, 0}; }
NvmlProcessUtilization Computes(unsigned pid, unsigned sm_percent) { return {pid, 0, sm_percent, 0, 0, 0}; }

TEST(Contention, AnIdleContextDisturbsNobody) {
  EXPECT_FALSE(AnotherComputes({Holds(kSelf), Holds(kOther)}, {Computes(kSelf, 90), Computes(kOther, 0)}, kSelf));
}

TEST(Contention, AnotherThatComputesDisturbs) {
  EXPECT_TRUE(AnotherComputes({Holds(kSelf), Holds(kOther)}, {Computes(kOther, 1)}, kSelf));
}

TEST(Contention, OurOwnLoadIsNone) {
  EXPECT_FALSE(AnotherComputes({Holds(kSelf), Holds(kOther)}, {Computes(kSelf, 90), Computes(kSelf, 80)}, kSelf));
}

TEST(Contention, WhereIdsAreForeignOneBusyProcessIsOurs) {
  EXPECT_FALSE(AnotherComputes({Holds(kOther), Holds(300)}, {Computes(kOther, 90)}, kSelf));
  EXPECT_TRUE(AnotherComputes({Holds(kOther), Holds(300)}, {Computes(kOther, 90), Computes(300, 5)}, kSelf));
}

}  // namespace
}  // namespace attune::device::cuda
