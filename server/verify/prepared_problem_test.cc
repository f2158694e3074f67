// Every guard is proven by a kernel that it must catch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/testing/fake_device.h"
#include "server/verify/testing/fake_kernels.h"
#include "server/verify/testing/prepared_problem_fixture.h"
#include "server/verify/verify.h"
#include "tests/golden/golden.h"

namespace attune::verify {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using worker::v1::Candidate;
using worker::v1::TrialResponse;

TEST_P(PreparedProblemTest, ARightKernelPassesOnEveryDistribution) {
  for (const char* text :
       {"b1.h2.q64.d16.f16", "b2.h4.kvh2.q5.kv33.d32.bf16.causal-br.lse", "b1.h1.q9.kv3.d16.f16.causal-br.bshd.lse",
        "b1.h2.q1.kv1.d64.f16", "b1.h4.q9.d16.f16.window4.softcap5.sinks.lse", "b4.h4.kvh2.q9.kv20.d16.bf16.varlen.lse",
        "b4.h4.kvh2.q3.kv20.d16.f16.causal-br.page8.lse", "b3.h2.q9.kv20.d16.f16.causal-br.sinks.varlen.page8.lse",
        "b2.h4.kvh2.q5.kv33.d32.bf16.kve4m3.lse", "b3.h2.q9.kv20.d16.f16.kve5m2.causal-br.varlen.page8"}) {
    Prepare(text);
    const TrialResponse response = Check(RightKernel(problem_));
    EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << text << ": " << response.detail();
    EXPECT_EQ(response.accuracy().cases(), 5);
    EXPECT_LT(response.accuracy().max_abs_error(), 0.02);
  }
}

TEST_P(PreparedProblemTest, OneWrongRowOf64IsFound) {
  Prepare("b1.h2.q64.d16.f16");
  const TrialResponse response = Check(RightThen([](const FakeArguments& arguments) {
    uint16_t* row = arguments.o.as<uint16_t>() + (64 + 63) * 16;
    for (int d = 0; d < 16; ++d) row[d] = FloatToF16(F16ToFloat(row[d]) * 1.1f + 0.01f);
  }));
  EXPECT_EQ(response.verdict(), v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(response.detail(),
              AllOf(HasSubstr("inputs 'normal'"), HasSubstr("head 1, row 63"), HasSubstr("of 2048")));
}

TEST_P(PreparedProblemTest, ANaNIsFound) {
  Prepare("b1.h1.q8.d16.f16");
  ExpectVerdict(RightThen([](const FakeArguments& arguments) { arguments.o.as<uint16_t>()[77] = 0x7e00; }),
                v1::VERDICT_WRONG_RESULT, "1 of 128 elements are wrong");
}

TEST_P(PreparedProblemTest, AWrongLogSumExpIsFound) {
  Prepare("b1.h1.q8.d16.f16.lse");
  ExpectVerdict(RightThen([](const FakeArguments& arguments) { arguments.lse.as<float>()[3] += 0.1f; }),
                v1::VERDICT_WRONG_RESULT, "LSE[3]");
}

TEST_P(PreparedProblemTest, LogSumExpIsNotBoundWhenNotAskedFor) {
  Prepare("b1.h1.q8.d16.f16");
  EXPECT_EQ(Check(RightThen([](const FakeArguments& arguments) { ASSERT_EQ(arguments.lse.data, nullptr); })).verdict(),
            v1::VERDICT_OK);
}

TEST_P(PreparedProblemTest, AQuickCheckIsOneRunAndItsTime) {
  Prepare("b1.h1.q8.d16.f16");
  int runs = 0, timed = 0;
  device_.kernels["right"] = RightThen([&](const FakeArguments&) { ++runs; });
  const absl::StatusOr<worker::v1::TrialResponse> quick =
      prepared_->QuickCheck(CandidateOf("right"), [&](const TimedCandidate& ran) {
        ++timed;
        return ran.runnables().front()->Run();
      });
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(quick->verdict(), v1::VERDICT_OK) << quick->detail();
  EXPECT_EQ(quick->accuracy().cases(), 1);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(timed, 1);
}

TEST_P(PreparedProblemTest, AQuickCheckFindsWhatIsWrongAndTimesNoneOfIt) {
  Prepare("b1.h1.q8.d16.f16");
  const auto time = [](const TimedCandidate&) -> absl::Status { return absl::InternalError("timed"); };
  device_.kernels["idle"] = [](const FakeArguments&) { return absl::OkStatus(); };
  absl::StatusOr<worker::v1::TrialResponse> quick = prepared_->QuickCheck(CandidateOf("idle"), time);
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(quick->verdict(), v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(quick->detail(), HasSubstr("inputs 'normal'"));
  device_.kernels["beyond"] = RightThen([](const FakeArguments& a) { a.o.data[a.o.size] = std::byte{0}; });
  quick = prepared_->QuickCheck(CandidateOf("beyond"), time);
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(quick->verdict(), v1::VERDICT_OUT_OF_BOUNDS);
  device_.kernels["big"] = RightKernel(problem_);
  device_.bind_errors["big"] = absl::FailedPreconditionError("too much shared memory");
  quick = prepared_->QuickCheck(CandidateOf("big"), time);
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(quick->verdict(), v1::VERDICT_INFEASIBLE);
}

TEST_P(PreparedProblemTest, AQuickCheckFindsInputsThatAreChangedWhileItIsTimed) {
  Prepare("b1.h1.q8.d16.f16");
  int runs = 0;
  device_.kernels["spoils"] = RightThen([&](const FakeArguments& a) {
    if (++runs % 2 == 0) a.k.data[5] = std::byte{0x33};
  });
  const absl::StatusOr<worker::v1::TrialResponse> quick = prepared_->QuickCheck(
      CandidateOf("spoils"), [](const TimedCandidate& ran) { return ran.runnables().front()->Run(); });
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(quick->verdict(), v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_THAT(quick->detail(), HasSubstr("changed its input K"));
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);  // repaired
}

TEST_P(PreparedProblemTest, OutputThatIsLeftFromTheRunBeforeIsFound) {
  Prepare("b1.h1.q8.d16.f16");
  ASSERT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
  ExpectVerdict([](const FakeArguments&) { return absl::OkStatus(); }, v1::VERDICT_WRONG_RESULT, "128 of 128");
}

TEST_P(PreparedProblemTest, AKernelThatComputesOnlyOnceIsWrong) {
  Prepare("b1.h1.q8.d16.f16");
  int calls = 0;
  ExpectVerdict([&, right = RightKernel(problem_)](
                    const FakeArguments& arguments) { return calls++ % 2 == 0 ? right(arguments) : absl::OkStatus(); },
                v1::VERDICT_WRONG_RESULT, "a second run on the same inputs: ");
}

TEST_P(PreparedProblemTest, WritesAroundOutputsAreFound) {
  Prepare("b1.h1.q8.d16.f16.lse");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.o.data[a.o.size] = std::byte{0}; }), v1::VERDICT_OUT_OF_BOUNDS,
                "O: written to 0 bytes past its end");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.o.data[-4096] = std::byte{0}; }), v1::VERDICT_OUT_OF_BOUNDS,
                "O: written to 4096 bytes before its start");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.lse.data[a.lse.size + 100] = std::byte{0}; }),
                v1::VERDICT_OUT_OF_BOUNDS, "LSE: written to 100 bytes past its end");
}

TEST_P(PreparedProblemTest, AWriteOfATilesRowsPastAnOutputIsFound) {
  Prepare("b1.h8.q8.d64.f16.bshd");
  ExpectVerdict(RightThen([](const FakeArguments& a) {
                  a.o.as<uint16_t>()[a.o.size / 2 + 127 * 8 * 64] = 0;  // the 128th row behind the last
                }),
                v1::VERDICT_OUT_OF_BOUNDS, "O: written to 130048 bytes past its end");
}

TEST_P(PreparedProblemTest, APageBeforeTheFirstIsNaN) {
  Prepare("b1.h4.kvh4.q1.kv300.d32.f16.page256");
  // Page -1 is what stands behind a sequence's last entry.
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.o.as<uint16_t>()[0] = a.v.as<uint16_t>()[-256 * 4 * 32]; }),
                v1::VERDICT_WRONG_RESULT, "nan, the reference");
}

TEST_P(PreparedProblemTest, WritesIntoAndAroundInputsAreFound) {
  Prepare("b1.h1.q8.d16.f16");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.k.data[5] = std::byte{0x33}; }), v1::VERDICT_OUT_OF_BOUNDS,
                "changed its input K");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.v.data[a.v.size + 1] = std::byte{0}; }),
                v1::VERDICT_OUT_OF_BOUNDS, "V: written to 1 bytes past its end");
  // A changed input also makes the result wrong: the cause is told, not the consequence.
  ExpectVerdict(
      [right = RightKernel(problem_)](const FakeArguments& a) {
        std::memset(a.v.data, 0, a.v.size);
        return right(a);
      },
      v1::VERDICT_OUT_OF_BOUNDS, "changed its input V");
}

TEST_P(PreparedProblemTest, WritesIntoSinksBoundsAndTablesAreFound) {
  Prepare("b2.h2.q8.d16.f16.sinks.varlen");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.sinks.as<float>()[1] += 1; }), v1::VERDICT_OUT_OF_BOUNDS,
                "changed its input the sinks");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.q_bounds.as<int32_t>()[0] = 1; }), v1::VERDICT_OUT_OF_BOUNDS,
                "changed its input the query bounds");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.kv_bounds.data[a.kv_bounds.size] = std::byte{0}; }),
                v1::VERDICT_OUT_OF_BOUNDS, "the key bounds: written to 0 bytes past its end");
  Prepare("b2.h2.q8.d16.f16.page4");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.kv_lengths.as<int32_t>()[1] = 1; }), v1::VERDICT_OUT_OF_BOUNDS,
                "changed its input the key lengths");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.page_table.as<int32_t>()[3] = 0; }), v1::VERDICT_OUT_OF_BOUNDS,
                "changed its input the page table");
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

TEST_P(PreparedProblemTest, WritesIntoScalesAreFound) {
  Prepare("b2.h2.q8.d16.f16.kve4m3");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.k_scale.as<float>()[3] *= 2; }), v1::VERDICT_OUT_OF_BOUNDS,
                "changed its input K's scales");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.v_scale.data[a.v_scale.size] = std::byte{0}; }),
                v1::VERDICT_OUT_OF_BOUNDS, "V's scales: written to 0 bytes past its end");
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

TEST_P(PreparedProblemTest, AKernelThatTakesAnotherHeadsScaleIsFound) {
  Prepare("b2.h4.kvh2.q8.d16.f16.kve5m2");
  for (FakePointer FakeArguments::*scales : {&FakeArguments::k_scale, &FakeArguments::v_scale}) {
    ExpectVerdict(
        [this, scales, right = RightKernel(problem_)](const FakeArguments& arguments) {
          FakeArguments wrong = arguments;
          std::vector<float> other(4, (arguments.*scales).as<float>()[0]);
          wrong.*scales = {reinterpret_cast<std::byte*>(other.data()), 4 * sizeof(float)};
          return right(wrong);
        },
        v1::VERDICT_WRONG_RESULT, "inputs 'normal'");
  }
}

TEST_P(PreparedProblemTest, WhatAProblemDoesNotHaveIsANullPointer) {
  Prepare("b2.h2.q8.d16.f16.varlen");
  EXPECT_EQ(Check(RightThen([](const FakeArguments& a) {
              ASSERT_NE(a.kv_bounds.data, nullptr);
              for (const FakePointer& none : {a.sinks, a.kv_lengths, a.page_table, a.k_scale, a.v_scale}) {
                ASSERT_EQ(none.data, nullptr);
              }
            })).verdict(),
            v1::VERDICT_OK);
}

TEST_P(PreparedProblemTest, AKernelThatReadsBehindASequencesEndIsFound) {
  Prepare("b2.h1.q1.kv5.d16.f16.page4");
  ExpectVerdict(RightThen([](const FakeArguments& a) {
                  // Row 5 of the first sequence, weighted by zero as a masked row would be.
                  const int32_t page = a.page_table.as<int32_t>()[1];
                  const float behind = F16ToFloat(a.v.as<uint16_t>()[(page * 4 + 1) * 16]);
                  uint16_t& o = a.o.as<uint16_t>()[0];
                  o = FloatToF16(F16ToFloat(o) + 0.0f * behind);
                }),
                v1::VERDICT_WRONG_RESULT, "nan, the reference");
}

TEST_P(PreparedProblemTest, AWrongTokenOfASequenceIsNamed) {
  Prepare("b2.h2.q8.d16.f16.varlen");
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.o.as<uint16_t>()[(9 * 2 + 1) * 16 + 3] = 0x4800; }),
                v1::VERDICT_WRONG_RESULT, "O[token 9, head 1, dim 3]");
}

// Of large inputs one case is looked at a trial: each of them must do.
TEST_P(PreparedProblemTest, WritesIntoLargeInputsAreFoundEachTime) {
  Prepare("b1.h1.q1.kv1000.d32.f16", /*large_bytes=*/0);
  for (int trial = 0; trial < 2; ++trial) {
    ExpectVerdict(RightThen([](const FakeArguments& a) { a.k.data[a.k.size - 1] = std::byte{0x33}; }),
                  v1::VERDICT_OUT_OF_BOUNDS, "changed its input K");
  }
}

TEST_P(PreparedProblemTest, ACandidateAfterOneThatWroteOutOfBoundsIsNotBlamed) {
  Prepare("b1.h1.q8.d16.f16.lse");
  ASSERT_EQ(Check(RightThen([](const FakeArguments& a) {
              std::memset(a.q.data - 64, 0, a.q.size + 128);
              std::memset(a.o.data - 64, 0, 64);
              std::memset(a.lse.data + a.lse.size, 0, 64);
            })).verdict(),
            v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

TEST_P(PreparedProblemTest, WhatIsReadOutsideABufferShowsInTheResult) {
  Prepare("b1.h1.q8.d16.f16");
  ExpectVerdict(RightThen([](const FakeArguments& a) {
                  // A row past the end of V, weighted by zero as a masked row would be.
                  const float outside = F16ToFloat(a.v.as<uint16_t>()[a.v.size / 2 + 3]);
                  uint16_t& o = a.o.as<uint16_t>()[3];
                  o = FloatToF16(F16ToFloat(o) + 0.0f * outside);
                }),
                v1::VERDICT_WRONG_RESULT, "nan, the reference");
}

TEST_P(PreparedProblemTest, ResultsThatDifferFromRunToRunAreUnstableUnlessTheFamilySaysSo) {
  Prepare("b1.h1.q8.d16.f16");
  int calls = 0;
  const FakeKernel flips_a_bit = RightThen([&calls](const FakeArguments& a) {
    if (++calls % 2 == 0) a.o.as<uint16_t>()[9] ^= 1;
  });
  EXPECT_EQ(Check(flips_a_bit, /*deterministic=*/true).verdict(), v1::VERDICT_UNSTABLE);
  EXPECT_EQ(Check(flips_a_bit, /*deterministic=*/false).verdict(), v1::VERDICT_OK);
}

TEST_P(PreparedProblemTest, ANonDeterministicKernelMustBeRightBothTimes) {
  Prepare("b1.h1.q8.d16.f16");
  int calls = 0;
  const FakeKernel wrong_the_second_time = RightThen([&calls](const FakeArguments& a) {
    if (++calls % 2 == 0) a.o.as<uint16_t>()[9] = 0x4000;
  });
  EXPECT_EQ(Check(wrong_the_second_time, /*deterministic=*/false).verdict(), v1::VERDICT_WRONG_RESULT);
  EXPECT_EQ(Check(wrong_the_second_time, /*deterministic=*/true).verdict(), v1::VERDICT_WRONG_RESULT);
}

class ScratchTest : public PreparedProblemTest {
 protected:
  void SetUp() override { Prepare("b1.h1.q8.d16.f16"); }

  TrialResponse CheckWithScratch(bool zero, const std::function<void(FakePointer)>& use, int64_t bytes = 64) {
    device_.kernels["scratch"] = RightThen([use](const FakeArguments& a) { use(a.scratch[0]); });
    Candidate candidate = CandidateOf("scratch");
    v1::ScratchBuffer* scratch = candidate.mutable_recipe()->add_scratch();
    scratch->set_name("partial");
    scratch->set_bytes(bytes);
    scratch->set_zero_before_first_run(zero);
    return Check(candidate);
  }
};

TEST_P(ScratchTest, ThatMustBeZeroIsZeroedOnceAndLeftToTheKernel) {
  std::vector<uint32_t> found;
  EXPECT_EQ(CheckWithScratch(true, [&](FakePointer scratch) { found.push_back(scratch.as<uint32_t>()[3]); }).verdict(),
            v1::VERDICT_OK);
  EXPECT_EQ(found, std::vector<uint32_t>(2 * Distributions().size()));
}

TEST_P(ScratchTest, ThatIsNotLeftZeroIsFoundAfterTheFirstRun) {
  int runs = 0;
  const TrialResponse response = CheckWithScratch(true, [&](FakePointer scratch) {
    ++runs;
    scratch.data[63] = std::byte{1};
  });
  EXPECT_EQ(response.verdict(), v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_THAT(response.detail(), HasSubstr("scratch partial: not left zero"));
  EXPECT_EQ(runs, 1);
}

TEST_P(ScratchTest, OfOtherKindsIsPoisonedBeforeEachRun) {
  std::vector<uint32_t> found;
  CheckWithScratch(false, [&](FakePointer scratch) {
    found.push_back(scratch.as<uint32_t>()[3]);
    scratch.as<uint32_t>()[3] = 0;
  });
  ASSERT_EQ(found.size(), 2 * Distributions().size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i % 2 == 0 ? 0xFFFFFFFFu : 0x5A5A5A5Au);
}

TEST_P(ScratchTest, IsGuardedToo) {
  const TrialResponse response =
      CheckWithScratch(false, [](FakePointer scratch) { scratch.data[scratch.size + 7] = std::byte{0}; });
  EXPECT_EQ(response.verdict(), v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_THAT(response.detail(), HasSubstr("scratch partial: written to 7 bytes past its end"));
}

TEST_P(ScratchTest, OfNoBytesIsANullPointer) {
  EXPECT_EQ(CheckWithScratch(
                false, [](FakePointer scratch) { ASSERT_EQ(scratch.data, nullptr); }, 0)
                .verdict(),
            v1::VERDICT_OK);
}

TEST_P(ScratchTest, ThatDoesNotFitMakesTheVariantInfeasible) {
  const TrialResponse response = CheckWithScratch(
      false, [](FakePointer) {}, int64_t{1} << 40);
  EXPECT_EQ(response.verdict(), v1::VERDICT_INFEASIBLE);
  EXPECT_THAT(response.detail(), HasSubstr("scratch 'partial'"));
}

TEST_P(PreparedProblemTest, WhatTheDeviceCannotRunIsInfeasible) {
  Prepare("b1.h1.q8.d16.f16");
  device_.kernels["big"] = RightKernel(problem_);
  device_.bind_errors["big"] = absl::FailedPreconditionError("needs 200 KB of shared memory");
  const TrialResponse response = Check(CandidateOf("big"));
  EXPECT_EQ(response.verdict(), v1::VERDICT_INFEASIBLE);
  EXPECT_THAT(response.detail(), HasSubstr("200 KB"));
}

TEST_P(PreparedProblemTest, AFaultOfTheDeviceIsAnErrorNotAVerdict) {
  Prepare("b1.h1.q8.d16.f16");
  device_.kernels["faults"] = [](const FakeArguments&) { return absl::AbortedError("illegal address"); };
  EXPECT_TRUE(absl::IsAborted(prepared_->Check(CandidateOf("faults"), GetParam()).status()));
}

TEST_P(PreparedProblemTest, EqualCodeIsLoadedOnceToBeCheckedAndOnceToBeTimedWhateverItsRecipe) {
  Prepare("b1.h1.q8.d16.f16");
  device_.kernels["right"] = RightKernel(problem_);
  const int before = device_.loads;
  Candidate candidate = CandidateOf("right");
  Check(candidate);
  candidate.mutable_recipe()->mutable_launches(0)->mutable_grid()->set_x(8);
  Check(candidate);
  EXPECT_EQ(device_.loads, before + 1);
  EXPECT_TRUE(prepared_->ForTiming(candidate).ok());
  EXPECT_TRUE(prepared_->ForTiming(candidate).ok());
  EXPECT_EQ(device_.loads, before + 2);
}

// The last set is the one that exceeds a limit. The Python bench rotates by the same rule.
TEST_P(PreparedProblemTest, TimingRotatesInputSetsUntilTheyExceedTwiceTheL2OrAQuarterOfTheMemory) {
  for (const auto& vector : Golden("rotation")) {
    const std::string text = vector["problem"];
    EXPECT_EQ(Bytes(*ParseProblem(text)), vector["set_bytes"].get<double>()) << text;
    device_.properties.set_l2_bytes(vector["l2_bytes"]);
    device_.properties.set_memory_bytes(vector["memory_bytes"]);
    Prepare(text.c_str());
    device_.kernels["right"] = RightKernel(problem_);
    absl::StatusOr<std::unique_ptr<TimedCandidate>> timed = prepared_->ForTiming(CandidateOf("right"));
    ASSERT_TRUE(timed.ok()) << timed.status();
    EXPECT_EQ((*timed)->runnables().size(), vector["sets"].get<size_t>()) << vector;
    for (device::Runnable* runnable : (*timed)->runnables()) EXPECT_TRUE(runnable->Run().ok());
  }
}

TEST_P(PreparedProblemTest, TimingSetsThatDidNotFitAreMadeLater) {
  Prepare("b1.h1.q8.d16.f16");
  device_.properties.set_l2_bytes(1 << 30);
  device_.kernels["right"] = RightKernel(problem_);
  device_.memory_limit = device_.allocated + (256 << 10);
  EXPECT_TRUE(absl::IsResourceExhausted(prepared_->ForTiming(CandidateOf("right")).status()));
  device_.memory_limit = size_t{1} << 30;
  const absl::StatusOr<std::unique_ptr<TimedCandidate>> timed = prepared_->ForTiming(CandidateOf("right"));
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_EQ((*timed)->runnables().size(), 8U);
}

TEST_P(PreparedProblemTest, WhatAProblemDoesNotHaveTakesNoMemory) {
  Prepare("b1.h1.q8.d16.f16");
  constexpr size_t kContents = 8 * 16 * sizeof(uint16_t);
  const auto guarded = [](size_t bytes) { return bytes + 2 * GuardedBuffer::kLeastZone; };
  const size_t cases = Distributions().size();
  const size_t references = inspector() == nullptr ? 0 : (cases + 1) * guarded(2 * kContents);
  EXPECT_EQ(device_.allocated, (3 * cases + 1) * guarded(kContents) + references);  // Q, K and V, and O
}

TEST_P(PreparedProblemTest, AllMemoryIsGivenBack) {
  Prepare("b1.h1.q8.d16.f16.lse");
  Check(RightKernel(problem_));
  prepared_.reset();
  EXPECT_EQ(device_.allocated, 0);
}

TEST(Prepare, AReferenceThatDisagreesWithTheHostIsTheServersError) {
  FakeDevice device;
  const Problem problem = *ParseProblem("b1.h1.q8.d16.f16");
  const worker::v1::PrepareRequest request = PrepareOn(device, problem);
  device.kernels["exact"] = [right = ReferenceKernel(problem, false)](const FakeArguments& arguments) {
    absl::Status status = right(arguments);
    arguments.o.as<float>()[17] += 0.01f;
    return status;
  };
  const absl::Status status = PreparedProblem::Create(device, problem, request, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("disagrees with fp64 on the host: inputs 'normal', O element 17"));
}

TEST(Prepare, AReferenceThatIsNotFiniteIsNoWildcard) {
  FakeDevice device;
  const Problem problem = *ParseProblem("b1.h1.q8.d16.f16");
  const worker::v1::PrepareRequest request = PrepareOn(device, problem);
  device.kernels["plain"] = [](const FakeArguments&) { return absl::OkStatus(); };  // leaves the poison
  const absl::Status status = PreparedProblem::Create(device, problem, request, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the plain reference kernel's O has element 0 = nan"));
}

TEST(Prepare, NeedsBothReferences) {
  FakeDevice device;
  const Problem problem = *ParseProblem("b1.h1.q8.d16.f16");
  worker::v1::PrepareRequest request = PrepareOn(device, problem);
  request.clear_plain();
  EXPECT_TRUE(absl::IsInvalidArgument(PreparedProblem::Create(device, problem, request, nullptr).status()));
}

ATTUNE_ON_BOTH_PATHS(PreparedProblemTest);
ATTUNE_ON_BOTH_PATHS(ScratchTest);

}  // namespace
}  // namespace attune::verify
