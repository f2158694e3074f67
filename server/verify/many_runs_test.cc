// What is wrong in a few runs of very many.
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/prepared_problem_fixture.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

using ::testing::HasSubstr;

class ManyRunsTest : public PreparedProblemTest {
 protected:
  void SetUp() override { Prepare("b1.h1.q8.d16.f16"); }

  Finding CheckManyRuns(FakeKernel kernel, bool deterministic = true) {
    device_.kernels["many"] = std::move(kernel);
    const worker::v1::Candidate candidate = CandidateOf("many", deterministic);
    EXPECT_EQ(Check(candidate).verdict(), v1::VERDICT_OK);
    absl::StatusOr<Finding> finding = prepared_->CheckManyRuns(candidate, absl::Milliseconds(250));
    EXPECT_TRUE(finding.ok()) << finding.status();
    return finding.ok() ? *finding : Finding();
  }

  // A right kernel that does `now and then` in every 37th run.
  FakeKernel RightButNowAndThen(std::function<void(const FakeArguments&)> now_and_then) {
    return RightThen([now_and_then = std::move(now_and_then), runs = std::make_shared<int>(0)](const FakeArguments& a) {
      if (++*runs % 37 == 0) now_and_then(a);
    });
  }
};

TEST_P(ManyRunsTest, ARightKernelRunsAtLeast64Times) {
  int runs = 0;
  EXPECT_TRUE(CheckManyRuns(RightThen([&](const FakeArguments&) { ++runs; })).ok());
  EXPECT_GE(runs, 64 + 2 * static_cast<int>(Distributions().size()));
}

TEST_P(ManyRunsTest, AResultThatIsSeldomWrongIsFound) {
  const Finding finding =
      CheckManyRuns(RightButNowAndThen([](const FakeArguments& a) { a.o.as<uint16_t>()[9] = 0x4c00; }));
  EXPECT_EQ(finding.verdict, v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(finding.detail, HasSubstr(": O[batch 0, head 0, row 0, dim 9] is 16"));
}

TEST_P(ManyRunsTest, ABitThatSeldomDiffersIsUnstableUnlessTheFamilySaysSo) {
  const FakeKernel flips = RightButNowAndThen([](const FakeArguments& a) { a.o.as<uint16_t>()[9] ^= 1; });
  EXPECT_EQ(CheckManyRuns(flips).verdict, v1::VERDICT_UNSTABLE);
  EXPECT_TRUE(CheckManyRuns(flips, /*deterministic=*/false).ok());
}

TEST_P(ManyRunsTest, ASeldomWriteAroundAnOutputIsFound) {
  EXPECT_EQ(
      CheckManyRuns(RightButNowAndThen([](const FakeArguments& a) { a.o.data[a.o.size] = std::byte{0}; })).verdict,
      v1::VERDICT_OUT_OF_BOUNDS);
}

TEST_P(ManyRunsTest, AnInputThatIsSeldomChangedIsFoundAndRepaired) {
  const Finding finding =
      CheckManyRuns(RightButNowAndThen([](const FakeArguments& a) { a.k.data[3] = std::byte{0x33}; }));
  EXPECT_EQ(finding.verdict, v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

ATTUNE_ON_BOTH_PATHS(ManyRunsTest);

}  // namespace
}  // namespace attune::verify
