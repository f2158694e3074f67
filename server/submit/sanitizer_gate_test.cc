// Sanitizers' turns in a loop of submissions, over fakes.
#include "server/submit/sanitizer_gate.h"

#include "server/profile/testing/fake_tools.h"
#include "server/submit/limits.h"
#include "server/submit/testing/submit_fixture.h"

namespace attune::submit {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SanitizerGateTest : public SubmitTest {
 protected:
  void SetUp() override {
    tools_ = &fake_;
    SubmitTest::SetUp();
  }

  v1::SubmitResult SubmitEvery(int every, int us) {
    v1::SubmitRequest request = RequestOf(us);
    request.set_sanitize_every(every);
    return Submit(request);
  }
  // Which of the iterations were sanitized.
  std::vector<int> Turns(int every, int iterations) {
    std::vector<int> turns;
    for (int i = 1; i <= iterations; ++i) {
      const size_t before = fake_.tools.size();
      SubmitEvery(every, 80 - i);
      if (fake_.tools.size() > before) turns.push_back(i);
    }
    return turns;
  }

  profile::FakeTools fake_;
};

TEST_F(SanitizerGateTest, EveryNthIterationHasATurn) { EXPECT_THAT(Turns(3, 7), ElementsAre(3, 6)); }

TEST_F(SanitizerGateTest, ZeroIsNever) { EXPECT_THAT(Turns(0, 6), IsEmpty()); }

TEST_F(SanitizerGateTest, EveryFifthWhereNothingIsSaid) {
  for (int i = 1; i < kSanitizeEvery; ++i) Submit(RequestOf(80 - i));
  EXPECT_THAT(fake_.tools, IsEmpty());
  Submit(RequestOf(50));
  EXPECT_THAT(fake_.tools, SizeIs(4));
}

TEST_F(SanitizerGateTest, WhatBelongsToNoLoopHasNone) {
  v1::SubmitRequest request = RequestOf(50);
  request.clear_loop();
  for (int i = 0; i < kSanitizeEvery; ++i) Submit(request);
  EXPECT_THAT(fake_.tools, IsEmpty());
}

TEST_F(SanitizerGateTest, FindingsRevertAndAreTheReason) {
  fake_.finds = v1::SANITIZER_TOOL_RACECHECK;
  const v1::SubmitResult result = SubmitEvery(1, 50);
  EXPECT_EQ(result.decision(), kRevert);
  EXPECT_EQ(result.reason(), "racecheck reports 2 errors: Invalid read");
  ASSERT_FALSE(result.rows(0).gates().empty());
  EXPECT_EQ(result.rows(0).gates(0).gate(), v1::GateFinding::GATE_SANITIZER);
  EXPECT_TRUE(result.rows(0).gates(0).failed());
  const absl::StatusOr<v1::Submission> kept = store_.GetSubmission(result.submission());
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->result().decision(), kRevert);
  EXPECT_EQ(store_.GetTrial(result.rows(0).trial().name())->sanitizing().runs(1).errors(), 2);
}

TEST_F(SanitizerGateTest, OneThatIsCleanIsKeptAndItsTrialSaysSo) {
  const v1::SubmitResult result = SubmitEvery(1, 50);
  EXPECT_EQ(result.decision(), kKeep) << result.reason();
  EXPECT_THAT(result.rows(0).gates(),
              Each(::testing::Property(&v1::GateFinding::gate, ::testing::Ne(v1::GateFinding::GATE_SANITIZER))));
  EXPECT_EQ(result.rows(0).trial().sanitizing().runs_size(), 4);
}

// The next that would be kept has it instead.
TEST_F(SanitizerGateTest, WhatIsRevertedAnywayTakesNoTurn) {
  SubmitEvery(2, 50);
  EXPECT_EQ(SubmitEvery(2, 150).decision(), kRevert);
  EXPECT_THAT(fake_.tools, IsEmpty());
  SubmitEvery(2, 40);
  EXPECT_THAT(fake_.tools, SizeIs(4));
}

TEST_F(SanitizerGateTest, CodeThatWasSanitizedIsNotAgain) {
  fake_.finds = v1::SANITIZER_TOOL_MEMCHECK;
  SubmitEvery(1, 50);
  EXPECT_EQ(SubmitEvery(1, 50).decision(), kRevert);
  EXPECT_THAT(fake_.tools, SizeIs(4));
}

TEST_F(SanitizerGateTest, AToolWithoutAResultIsAWarning) {
  fake_.late = v1::SANITIZER_TOOL_INITCHECK;
  const v1::SubmitResult result = SubmitEvery(1, 50);
  EXPECT_EQ(result.decision(), kKeep);
  const v1::GateFinding& gate = *result.rows(0).gates().rbegin();
  EXPECT_FALSE(gate.failed());
  EXPECT_EQ(gate.text(), "initcheck came to no result: it was ended after 2m");
}

TEST_F(SanitizerGateTest, AHostWithoutTheToolSaysSoEveryNthTimeAndKeeps) {
  fake_.here = absl::FailedPreconditionError("this host has no compute-sanitizer");
  SubmitEvery(2, 60);
  const v1::SubmitResult turn = SubmitEvery(2, 50);
  EXPECT_EQ(turn.decision(), kKeep);
  EXPECT_EQ(turn.rows(0).gates().rbegin()->text(), "not sanitized: this host has no compute-sanitizer");
  const v1::SubmitResult next = SubmitEvery(2, 40);
  for (const v1::GateFinding& gate : next.rows(0).gates()) EXPECT_NE(gate.gate(), v1::GateFinding::GATE_SANITIZER);
}

TEST_F(SanitizerGateTest, AnothersLoopOfTheSameNameCountsForItself) {
  SubmitEvery(2, 50);
  v1::SubmitRequest request = RequestOf(40);
  request.set_sanitize_every(2);
  Submit(request, "token:grace");
  EXPECT_THAT(fake_.tools, IsEmpty());
}

TEST(CheckSanitizers, KnowsCudaDevicesAlone) {
  const profile::FakeTools tools;
  v1::Device cpu = catalog::FakeDevice();
  EXPECT_TRUE(profile::CheckSanitizers(cpu, &tools).ok());
  cpu.set_backend(v1::BACKEND_OPENCL);
  EXPECT_THAT(std::string(profile::CheckSanitizers(cpu, &tools).message()), HasSubstr("knows CUDA devices alone"));
}

}  // namespace
}  // namespace attune::submit
