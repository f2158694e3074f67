// What a reload makes anew, and what it keeps.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/prepared_problem_fixture.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

using ::testing::HasSubstr;

class ReloadTest : public PreparedProblemTest {
 protected:
  absl::Status Reload() {
    absl::StatusOr<std::unique_ptr<PreparedProblem>> reloaded = PreparedProblem::Reload(std::move(prepared_));
    if (reloaded.ok()) prepared_ = *std::move(reloaded);
    return reloaded.status();
  }

  // With the inputs' copies that timing takes, and a kernel of each use loaded.
  void PrepareAndUse(const char* text) {
    device_.properties.set_l2_bytes(static_cast<int64_t>(Bytes(*ParseProblem(text))));
    Prepare(text);
    device_.kernels["right"] = RightKernel(problem_);
    EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
    EXPECT_TRUE(Time("right").ok());
  }

  Finding Time(const char* name) {
    absl::StatusOr<std::unique_ptr<TimedCandidate>> timed = prepared_->ForTiming(CandidateOf(name));
    EXPECT_TRUE(timed.ok()) << timed.status();
    const auto run_all = [&] {
      absl::Status status;
      for (device::Runnable* runnable : (*timed)->runnables()) status.Update(runnable->Run());
      return status;
    };
    EXPECT_TRUE(run_all().ok());
    absl::StatusOr<Finding> finding =
        prepared_->CheckTimed(**timed, (*timed)->runnables().size(), run_all, PreparedProblem::Occasion::kTrial);
    EXPECT_TRUE(finding.ok()) << finding.status();
    return finding.ok() ? *finding : Finding();
  }

  // All inputs of all cases, one behind the other, as kernels find them.
  std::vector<std::byte> Inputs() {
    std::vector<std::byte> seen;
    EXPECT_EQ(Check(RightThen([&](const FakeArguments& a) {
                for (const FakePointer& input : {a.q, a.k, a.v, a.sinks}) {
                  seen.insert(seen.end(), input.data, input.data + input.size);
                }
              })).verdict(),
              v1::VERDICT_OK);
    return seen;
  }
};

TEST_P(ReloadTest, AllMemoryIsAllocatedAnew) {
  PrepareAndUse("b1.h2.q9.d16.f16.lse");
  const size_t before = device_.allocated_ever;
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(device_.allocated_ever - before, device_.allocated);
  EXPECT_TRUE(Time("right").ok());
  EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
}

TEST_P(ReloadTest, TheOldMemoryIsFreeBeforeOtherIsTaken) {
  Prepare("b1.h2.q9.d16.f16.lse");
  device_.memory_limit = device_.allocated;
  EXPECT_TRUE(Reload().ok());
  EXPECT_EQ(device_.allocated, device_.memory_limit);
}

TEST_P(ReloadTest, CodeIsLoadedAnewToBeCheckedAndToBeTimed) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  const int before = device_.loads;
  EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
  EXPECT_TRUE(Time("right").ok());
  EXPECT_EQ(device_.loads, before);
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(device_.loads, before);
  EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
  EXPECT_EQ(device_.loads, before + 1);
  EXPECT_TRUE(Time("right").ok());
  EXPECT_EQ(device_.loads, before + 2);
}

TEST_P(ReloadTest, InputsAndWhatIsRightForThemStayAsTheyWere) {
  for (const char* text : {"b2.h4.kvh2.q5.kv33.d32.bf16.causal-br.sinks.lse", "b2.h2.q8.d16.f16.kve4m3"}) {
    PrepareAndUse(text);
    const std::vector<std::byte> before = Inputs();
    const worker::v1::TrialResponse checked = Check(CandidateOf("right"));
    device_.kernels["exact"] =
        device_.kernels["plain"] = [](const FakeArguments&) { return absl::InternalError("computed again"); };
    ASSERT_TRUE(Reload().ok());
    EXPECT_EQ(Inputs(), before) << text;
    EXPECT_EQ(Check(CandidateOf("right")).accuracy().SerializeAsString(), checked.accuracy().SerializeAsString());
  }
}

TEST_P(ReloadTest, WhatIsWrongIsFoundAfterIt) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  ASSERT_TRUE(Reload().ok());
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.o.as<uint16_t>()[77] = 0x4c00; }), v1::VERDICT_WRONG_RESULT,
                "1 of 128 elements are wrong");
  int runs = 0;
  device_.kernels["once"] = [&, right = RightKernel(problem_)](const FakeArguments& a) {
    return ++runs <= 3 ? right(a) : absl::OkStatus();
  };
  EXPECT_EQ(Time("once").verdict, v1::VERDICT_WRONG_RESULT);
}

TEST_P(ReloadTest, DamageDoneBeforeItIsGone) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  const std::vector<std::byte> before = Inputs();
  device_.kernels["spoils"] = RightThen([&](const FakeArguments& a) {
    std::memset(a.k.data - 16, 0x33, a.k.size + 32);
    std::memset(a.o.data - 16, 0x33, 16);
    for (const FakePointer& reference : device_.fake_inspector.references) std::memset(reference.data, 0x33, 8);
  });
  {
    const absl::StatusOr<std::unique_ptr<TimedCandidate>> timed = prepared_->ForTiming(CandidateOf("spoils"));
    for (device::Runnable* runnable : (*timed)->runnables()) EXPECT_TRUE(runnable->Run().ok());
  }
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(Inputs(), before);
  const Finding right = Time("right");
  EXPECT_TRUE(right.ok()) << right.detail;
}

TEST_P(ReloadTest, DamageDoneAfterItIsFoundAndRepaired) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  ASSERT_TRUE(Reload().ok());
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.k.data[5] = std::byte{0x33}; }), v1::VERDICT_OUT_OF_BOUNDS,
                "inputs 'normal': changed its input K");
  int runs = 0;
  device_.kernels["spoils"] = RightThen([&](const FakeArguments& a) {
    if (++runs == 2) a.v.data[a.v.size] = std::byte{0x33};  // of a timing set
  });
  const Finding timed = Time("spoils");
  EXPECT_EQ(timed.verdict, v1::VERDICT_OUT_OF_BOUNDS);
  EXPECT_THAT(timed.detail, HasSubstr("input set 2: V: written to 0 bytes past its end"));
  EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
}

// Where there is an inspector, references lie on the device and inputs are drawn there.
class ReloadOnDeviceTest : public ReloadTest {};

TEST_P(ReloadOnDeviceTest, AWriteToAReferenceAfterItIsFound) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  ASSERT_TRUE(Reload().ok());
  device_.fake_inspector.references.clear();
  EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
  const FakePointer reference = device_.fake_inspector.references.front();
  ExpectVerdict(RightThen([reference](const FakeArguments&) { std::memset(reference.data, 0x33, 8); }),
                v1::VERDICT_OUT_OF_BOUNDS, "wrote to reference results");
}

// Whoever is checked first would be blamed for it.
TEST_P(ReloadOnDeviceTest, InputsThatAreNotAsTheyWereAreTheServersError) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  device_.fake_inspector.spoil_drawn = [](FakePointer drawn) { drawn.data[3] ^= std::byte{1}; };
  EXPECT_EQ(Reload().code(), absl::StatusCode::kInternal);
}

TEST_P(ReloadTest, OneThatFailsGivesAllMemoryBack) {
  PrepareAndUse("b1.h1.q8.d16.f16");
  device_.memory_limit = 200'000;
  EXPECT_TRUE(absl::IsResourceExhausted(Reload()));
  EXPECT_EQ(prepared_, nullptr);
  EXPECT_EQ(device_.allocated, 0);
}

TEST_P(ReloadTest, CanFollowAnother) {
  PrepareAndUse("b1.h1.q8.d16.f16.lse");
  for (int cycle = 0; cycle < 3; ++cycle) {
    ASSERT_TRUE(Reload().ok());
    EXPECT_TRUE(Time("right").ok());
    EXPECT_EQ(Check(CandidateOf("right")).verdict(), v1::VERDICT_OK);
  }
}

ATTUNE_ON_BOTH_PATHS(ReloadTest);
INSTANTIATE_TEST_SUITE_P(Looked, ReloadOnDeviceTest, ::testing::Values(PreparedProblem::Look::kOnDevice), NameOf);

}  // namespace
}  // namespace attune::verify
