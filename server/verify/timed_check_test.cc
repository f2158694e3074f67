// What a kernel may do only while it is timed, and that it is found.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/prepared_problem_fixture.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using worker::v1::Candidate;

// A kernel is bound for timing, run as timing runs it, and looked after.
class CheckTimedTest : public PreparedProblemTest {
 protected:
  void PrepareWithSets(const char* text) {
    device_.properties.set_l2_bytes(static_cast<int64_t>(Bytes(*ParseProblem(text))));
    Prepare(text);
  }

  Finding Time(const Candidate& candidate, int rounds = 3) {
    absl::StatusOr<std::unique_ptr<TimedCandidate>> timed = prepared_->ForTiming(candidate);
    EXPECT_TRUE(timed.ok()) << timed.status();
    const auto run_all = [&] {
      absl::Status status;
      for (device::Runnable* runnable : (*timed)->runnables()) status.Update(runnable->Run());
      return status;
    };
    for (int round = 0; round < rounds; ++round) EXPECT_TRUE(run_all().ok());
    absl::StatusOr<Finding> finding =
        prepared_->CheckTimed(**timed, (*timed)->runnables().size(), run_all, PreparedProblem::Occasion::kTrial);
    EXPECT_TRUE(finding.ok()) << finding.status();
    return finding.ok() ? *finding : Finding();
  }
  Finding Time(FakeKernel kernel) {
    device_.kernels["timed"] = std::move(kernel);
    return Time(CandidateOf("timed"));
  }
  void ExpectTimed(FakeKernel kernel, v1::Verdict verdict, const char* detail) {
    const Finding finding = Time(std::move(kernel));
    EXPECT_EQ(finding.verdict, verdict) << finding.detail;
    EXPECT_THAT(finding.detail, AllOf(HasSubstr("while it was timed: "), HasSubstr(detail)));
  }
  void ExpectTheNextIsRight() {
    EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
    device_.kernels["next"] = RightKernel(problem_);
    const Finding next = Time(CandidateOf("next"));
    EXPECT_TRUE(next.ok()) << next.detail;
  }
};

bool HoldsThePoisonOfACheck(const FakeArguments& a) {
  return *a.o.as<uint16_t>() == 0xFFFF || *a.o.as<uint16_t>() == 0x5A5A;
}

TEST_P(CheckTimedTest, ARightKernelPasses) {
  for (const char* text : {"b1.h2.q64.d16.f16", "b2.h4.kvh2.q5.kv33.d32.bf16.causal-br.lse", "b1.h1.q1.d16.f16.lse",
                           "b4.h4.kvh2.q9.kv20.d16.bf16.varlen.lse", "b4.h4.kvh2.q3.kv20.d16.f16.causal-br.page8.lse",
                           "b3.h2.q9.kv20.d16.f16.causal-br.sinks.varlen.page8.lse"}) {
    PrepareWithSets(text);
    for (int trial = 0; trial < 4; ++trial) {  // whatever is drawn
      const Finding finding = Time(RightKernel(problem_));
      EXPECT_TRUE(finding.ok()) << text << ": " << finding.detail;
    }
  }
}

TEST_P(CheckTimedTest, AKernelThatWorksOnlyWhereItSeesThePoisonIsFound) {
  PrepareWithSets("b1.h1.q8.d16.f16.lse");
  ExpectTimed([right = RightKernel(problem_)](
                  const FakeArguments& a) { return HoldsThePoisonOfACheck(a) ? right(a) : absl::OkStatus(); },
              v1::VERDICT_WRONG_RESULT, "run on input set 1 of 3");
}

TEST_P(CheckTimedTest, AKernelThatStopsAfterSoManyRunsIsFound) {
  PrepareWithSets("b1.h1.q8.d16.f16");
  int calls = 0;
  ExpectTimed(
      [&, right = RightKernel(problem_)](const FakeArguments& a) { return calls++ < 10 ? right(a) : absl::OkStatus(); },
      v1::VERDICT_WRONG_RESULT, "the reference");
}

TEST_P(CheckTimedTest, AKernelThatStopsWritingTheLogSumExpIsFound) {
  PrepareWithSets("b1.h1.q1.kv9.d16.f16.lse");
  ExpectTimed(
      [right = RightKernel(problem_)](const FakeArguments& a) {
        const float before = *a.lse.as<float>();
        absl::Status status = right(a);
        if (!std::isnan(before) && before != 0) *a.lse.as<float>() = before;
        return status;
      },
      v1::VERDICT_WRONG_RESULT, "LSE[0]");
}

TEST_P(CheckTimedTest, AKernelThatReusesTheResultsOfEarlierRunsIsFound) {
  PrepareWithSets("b1.h1.q8.d16.f16");
  std::map<const std::byte*, std::vector<std::byte>> results;
  ExpectTimed(
      [&, right = RightKernel(problem_)](const FakeArguments& a) {
        std::vector<std::byte>& result = results[a.o.data];
        if (!result.empty()) {
          std::copy(result.begin(), result.end(), a.o.data);
          return absl::OkStatus();
        }
        absl::Status status = right(a);
        result.assign(a.o.data, a.o.data + a.o.size);
        return status;
      },
      v1::VERDICT_WRONG_RESULT, "the reference");
  ExpectTheNextIsRight();
}

TEST_P(CheckTimedTest, AKernelThatKnowsItsInputsByOneElementOfEachIsFound) {
  PrepareWithSets("b1.h1.q40.d16.f16");
  std::map<std::vector<uint16_t>, std::vector<std::byte>> results;
  const FakeKernel caches = [&, right = RightKernel(problem_)](const FakeArguments& a) {
    const std::vector<uint16_t> key = {*a.q.as<uint16_t>(), *a.k.as<uint16_t>(), *a.v.as<uint16_t>()};
    std::vector<std::byte>& result = results[key];
    if (result.empty()) {
      absl::Status status = right(a);
      result.assign(a.o.data, a.o.data + a.o.size);
      return status;
    }
    std::copy(result.begin(), result.end(), a.o.data);
    return absl::OkStatus();
  };
  ASSERT_EQ(Check(caches).verdict(), v1::VERDICT_OK);
  ExpectTimed(caches, v1::VERDICT_WRONG_RESULT, "on new inputs: ");
  ExpectTheNextIsRight();
}

TEST_P(CheckTimedTest, AKernelThatRunsOnlyWhereItsInputsAreNewIsFound) {
  for (const bool several : {true, false}) {
    if (several) PrepareWithSets("b1.h1.q8.d16.f16");
    if (!several) Prepare("b1.h1.q8.d16.f16");
    std::map<const std::byte*, std::vector<std::byte>> queries;  // of the last run, by its output
    ExpectTimed(
        [&, right = RightKernel(problem_)](const FakeArguments& a) {
          std::vector<std::byte> now(a.q.data, a.q.data + a.q.size);
          return std::exchange(queries[a.o.data], now) == now ? absl::OkStatus() : right(a);
        },
        v1::VERDICT_WRONG_RESULT, "the reference");
    ExpectTheNextIsRight();
  }
}

TEST_P(CheckTimedTest, AKernelThatRunsOnlyWhereItsLastOutputIsGoneIsFound) {
  for (const bool several : {true, false}) {
    if (several) PrepareWithSets("b1.h1.q8.d16.f16");
    if (!several) Prepare("b1.h1.q8.d16.f16");
    std::map<const std::byte*, std::vector<std::byte>> results;  // of the last run, by where they are
    ExpectTimed(
        [&, right = RightKernel(problem_)](const FakeArguments& a) {
          std::vector<std::byte>& result = results[a.o.data];
          if (result.size() == a.o.size && std::equal(result.begin(), result.end(), a.o.data)) return absl::OkStatus();
          absl::Status status = right(a);
          result.assign(a.o.data, a.o.data + a.o.size);
          return status;
        },
        v1::VERDICT_WRONG_RESULT, "on new inputs: ");
    ExpectTheNextIsRight();
  }
}

TEST_P(CheckTimedTest, AKernelThatRunsOnlyForTheFirstOutputThatItIsGivenIsFound) {
  PrepareWithSets("b1.h1.q8.d16.f16");
  const std::byte* first = nullptr;
  ExpectTimed(
      [&, right = RightKernel(problem_)](const FakeArguments& a) {
        if (first == nullptr) first = a.o.data;
        return a.o.data == first ? right(a) : absl::OkStatus();
      },
      v1::VERDICT_WRONG_RESULT, "run on input set 2 of 3");
}

TEST_P(CheckTimedTest, AnInputThatIsChangedInAnySetIsFoundAndRepaired) {
  PrepareWithSets("b1.h1.q8.d16.f16");
  for (int set = 0; set < 3; ++set) {
    int calls = 0;
    ExpectTimed(RightThen([&](const FakeArguments& a) {
                  if (calls++ == 3 + set) a.k.data[5] = std::byte{0x33};
                }),
                v1::VERDICT_OUT_OF_BOUNDS, "changed its input K");
    ExpectTheNextIsRight();
  }
}

TEST_P(CheckTimedTest, AnInputOfACheckThatIsChangedIsFoundAndRepaired) {
  PrepareWithSets("b1.h1.q8.d16.f16");
  FakePointer last_case;
  ASSERT_EQ(Check(RightThen([&](const FakeArguments& a) { last_case = a.v; })).verdict(), v1::VERDICT_OK);
  ExpectTimed(RightThen([&](const FakeArguments&) { last_case.data[0] = std::byte{0x33}; }), v1::VERDICT_OUT_OF_BOUNDS,
              "inputs 'counting': changed its input V");
  ExpectTheNextIsRight();
}

TEST_P(CheckTimedTest, WritesAroundOutputsAndScratchAreFound) {
  PrepareWithSets("b1.h1.q8.d16.f16.lse");
  ExpectTimed(RightThen([](const FakeArguments& a) { a.lse.data[a.lse.size] = std::byte{0}; }),
              v1::VERDICT_OUT_OF_BOUNDS, "LSE: written to 0 bytes past its end");
  ExpectTheNextIsRight();
  device_.kernels["scratch"] = RightThen([](const FakeArguments& a) { a.scratch[0].data[-1] = std::byte{0}; });
  Candidate candidate = CandidateOf("scratch");
  v1::ScratchBuffer* scratch = candidate.mutable_recipe()->add_scratch();
  scratch->set_name("partial");
  scratch->set_bytes(64);
  const Finding finding = Time(candidate);
  EXPECT_EQ(finding.verdict, v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_THAT(finding.detail, HasSubstr("scratch partial: written to 1 bytes before its start"));
}

TEST_P(CheckTimedTest, AFaultOfTheDeviceIsAnError) {
  PrepareWithSets("b1.h1.q8.d16.f16");
  device_.kernels["right"] = RightKernel(problem_);
  absl::StatusOr<std::unique_ptr<TimedCandidate>> timed = prepared_->ForTiming(CandidateOf("right"));
  ASSERT_TRUE(timed.ok()) << timed.status();
  const auto fault = [] { return absl::AbortedError("illegal address"); };
  EXPECT_TRUE(absl::IsAborted(prepared_->CheckTimed(**timed, 1, fault, PreparedProblem::Occasion::kTrial).status()));
}

TEST_P(CheckTimedTest, DamageToLargeInputsIsNotBlamedOnTheNext) {
  Prepare("b1.h1.q1.kv1000.d32.f16", /*large_bytes=*/0);
  const FakeKernel right = RightKernel(problem_);
  int calls = 0;
  // Changes the third case's V. The host looks at the first alone, the device at all of them.
  ASSERT_EQ(Check([&](const FakeArguments& a) {
              absl::Status status = right(a);
              if (++calls == 6) std::memset(a.v.data, 0x33, a.v.size);
              return status;
            }).verdict(),
            GetParam() == PreparedProblem::Look::kOnHost ? v1::VERDICT_OK : v1::VERDICT_OUT_OF_BOUNDS);
  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(Check(right).verdict(), v1::VERDICT_OK);
}

ATTUNE_ON_BOTH_PATHS(CheckTimedTest);

}  // namespace
}  // namespace attune::verify
