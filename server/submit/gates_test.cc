#include "server/submit/gates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/fake_host.h"

namespace attune::submit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Trial GoodTrial() {
  v1::Trial trial;
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_median_us(10);
  trial.mutable_geometry()->set_ctas(232);
  trial.mutable_geometry()->set_sm_count(58);
  trial.mutable_geometry()->set_threads_per_cta(128);
  trial.mutable_geometry()->set_ctas_per_sm(4);
  trial.mutable_geometry()->set_occupancy(0.5);
  return trial;
}

// The one finding.
v1::GateFinding Only(const v1::Trial& trial, double speedup = 1.5) {
  const std::vector<v1::GateFinding> gates = GatesOf(trial, catalog::FakeDevice(), speedup);
  EXPECT_EQ(gates.size(), 1U);
  return gates.empty() ? v1::GateFinding() : gates.front();
}

TEST(Gates, FindNothingAtAGoodKernel) {
  EXPECT_THAT(GatesOf(GoodTrial(), catalog::FakeDevice(), 1.5), IsEmpty());
  EXPECT_THAT(GatesOf(GoodTrial(), catalog::FakeDevice(), 0), IsEmpty()) << "without a base";
  EXPECT_THAT(GatesOf(GoodTrial(), catalog::FakeDevice(), 0.985), IsEmpty()) << "not slower by more than 2 %";
}

TEST(Gates, WarnOfTooFewCtasAndSayTheWayOut) {
  v1::Trial trial = GoodTrial();
  trial.mutable_geometry()->set_ctas(231);
  EXPECT_EQ(Only(trial).gate(), v1::GateFinding::GATE_CTAS);
  EXPECT_FALSE(Only(trial).failed());
  EXPECT_THAT(Only(trial).text(), HasSubstr("231 CTAs on 58 SMs; 4 an SM would be 232. Split the keys"));
}

TEST(Gates, FailARegressionBeyondTwoPercent) {
  const v1::GateFinding finding = Only(GoodTrial(), 1 / 1.021);
  EXPECT_EQ(finding.gate(), v1::GateFinding::GATE_REGRESSION);
  EXPECT_TRUE(finding.failed());
  EXPECT_EQ(finding.text(), "2.1 % slower than the base; allowed: 2 %");
  EXPECT_TRUE(Reverts({finding}));
}

TEST(Gates, TellOfSpillsSharedMemoryAndOccupancy) {
  v1::Trial spills = GoodTrial();
  spills.mutable_resources()->set_spill_bytes(64);
  spills.mutable_resources()->set_registers(255);
  EXPECT_FALSE(Only(spills).failed());
  spills.set_verdict(v1::VERDICT_INFEASIBLE);
  EXPECT_TRUE(Only(spills).failed());
  EXPECT_THAT(Only(spills).text(), HasSubstr("spills 64 bytes a thread at 255 registers"));

  v1::Trial shared = GoodTrial();
  shared.mutable_resources()->set_shared_bytes(101377);
  EXPECT_EQ(Only(shared).gate(), v1::GateFinding::GATE_SHARED_MEMORY);
  EXPECT_TRUE(Only(shared).failed());
  EXPECT_THAT(Only(shared).text(), HasSubstr("101377 bytes of shared memory a block; cuda:0 has 101376"));

  v1::Trial few = GoodTrial();
  few.mutable_geometry()->set_occupancy(0.2);
  EXPECT_EQ(Only(few).gate(), v1::GateFinding::GATE_OCCUPANCY);
  EXPECT_FALSE(Only(few).failed());
}

TEST(Gates, PutWhatRevertsFirst) {
  v1::Trial trial = GoodTrial();
  trial.mutable_geometry()->set_ctas(2);
  trial.set_verdict(v1::VERDICT_TIMEOUT);
  trial.set_detail("no answer within 6s");
  const auto gates = GatesOf(trial, catalog::FakeDevice(), 0);
  ASSERT_EQ(gates.size(), 2U);
  EXPECT_EQ(gates[0].gate(), v1::GateFinding::GATE_TIME);
  EXPECT_EQ(gates[0].text(), "no answer within 6s");
}

}  // namespace
}  // namespace attune::submit
