#include "server/worker/time_floor.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::worker {
namespace {

using ::testing::HasSubstr;

// Reads 1,000 bytes and does 1,024 tensor operations a clock and SM: round figures, nobody's.
attune::v1::Device Card() {
  attune::v1::Device card;
  card.set_model("Card");
  card.set_target("sm_89");
  card.set_compute_capability(89);
  card.set_compute_units(10);
  card.set_sm_clock_mhz(1000);
  card.set_memory_bandwidth_gbs(100);
  card.set_l2_bytes(1 << 20);
  return card;
}

// Q, K and V of 16 MiB each.
const Problem kProblem = *ParseProblem("b8.h16.q512.d128.f16");
constexpr double kInputBytes = 3 * 8 * 16 * 512 * 128 * 2.0;
constexpr double kFlops = 4.0 * 128 * 8 * 16 * 512 * 512;

TEST(TimeFloor, ColdInputsAreAllRead) {
  EXPECT_DOUBLE_EQ(TimeFloorOf(kProblem, Card(), attune::v1::POLICY_COLD, 1).bytes_us, kInputBytes / 100e3);
}

TEST(TimeFloor, HotInputsMayHaveStayedInL2ByAsMuchAsItHolds) {
  EXPECT_DOUBLE_EQ(TimeFloorOf(kProblem, Card(), attune::v1::POLICY_HOT, 4).bytes_us,
                   (kInputBytes - (1 << 18)) / 100e3);
  EXPECT_EQ(TimeFloorOf(*ParseProblem("b1.h1.q128.d64.f16"), Card(), attune::v1::POLICY_HOT, 1).bytes_us, 0);
}

TEST(TimeFloor, KeysThatNoRowSeesNeedNotBeRead) {
  EXPECT_EQ(TimeFloorOf(*ParseProblem("b8.h16.q1.kv512.d128.f16.causal"), Card(), attune::v1::POLICY_COLD, 1).bytes_us,
            0);
  EXPECT_EQ(TimeFloorOf(*ParseProblem("b8.h16.q512.d128.f16.window8"), Card(), attune::v1::POLICY_COLD, 1).bytes_us, 0);
  EXPECT_GT(
      TimeFloorOf(*ParseProblem("b8.h16.q1.kv512.d128.f16.causal-br"), Card(), attune::v1::POLICY_COLD, 1).bytes_us, 0);
}

TEST(TimeFloor, ArithmeticIsThatOfVisiblePairsOnTheTensorCores) {
  EXPECT_DOUBLE_EQ(TimeFloorOf(kProblem, Card(), attune::v1::POLICY_HOT, 1).flops_us, kFlops / (1024.0 * 10 * 1000));
}

TEST(TimeFloor, WhatIsNotKnownOfADeviceBoundsNothing) {
  attune::v1::Device unknown = Card();
  unknown.set_memory_bandwidth_gbs(0);
  unknown.set_compute_capability(0);
  EXPECT_EQ(BelowFloor(1e-3, kProblem, unknown, attune::v1::POLICY_COLD, 1), "");
}

TEST(TimeFloor, AnEmulatedComputeCapabilityHasNotItsRate) {
  attune::v1::Device emulated = Card();
  emulated.set_target("compute_89");
  EXPECT_EQ(TimeFloorOf(kProblem, emulated, attune::v1::POLICY_HOT, 1).flops_us, 0);
}

TEST(TimeFloor, ATimeMoreThanATenthBelowCannotBe) {
  const double least = kFlops / (1024.0 * 10 * 1000);
  EXPECT_EQ(BelowFloor(0.91 * least, kProblem, Card(), attune::v1::POLICY_HOT, 1), "");
  EXPECT_THAT(BelowFloor(0.89 * least, kProblem, Card(), attune::v1::POLICY_HOT, 1), HasSubstr("the arithmetic takes"));
}

TEST(TimeFloor, SaysWhichOfTheTwoIsTheHigher) {
  const Problem decode = *ParseProblem("b64.h8.q1.kv4096.d128.f16");
  EXPECT_THAT(BelowFloor(1, decode, Card(), attune::v1::POLICY_COLD, 1), HasSubstr("reading the inputs takes"));
}

}  // namespace
}  // namespace attune::worker
