// What becomes of a kernel that writes to what the device's own comparison needs, and of an inspector that is wrong.
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/testing/prepared_problem_fixture.h"

namespace attune::verify {
namespace {

using ::testing::HasSubstr;
using Look = PreparedProblem::Look;

class DevicePathTest : public PreparedProblemTest {
 protected:
  // The reference results of the first case, as a stray write finds them.
  FakePointer Reference() {
    EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
    return device_.fake_inspector.references.front();
  }
};

TEST_P(DevicePathTest, ARightKernelIsComparedWhereItsResultsLie) {
  Prepare("b1.h2.q64.d16.f16.lse");
  const int before = device_.fake_inspector.compared;
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
  EXPECT_EQ(device_.fake_inspector.compared - before, 2 * static_cast<int>(Distributions().size()));
}

TEST_P(DevicePathTest, TheHostLooksWhereItIsAskedTo) {
  Prepare("b1.h2.q64.d16.f16.lse");
  device_.kernels["right"] = RightKernel(problem_);
  device_.fake_inspector.compared = 0;
  EXPECT_EQ(prepared_->Check(CandidateOf("right"), Look::kOnHost)->verdict(), v1::VERDICT_OK);
  EXPECT_TRUE(prepared_->CheckManyRuns(CandidateOf("right"), absl::Milliseconds(250))->ok());
  EXPECT_EQ(device_.fake_inspector.compared, 0);
}

// The inspector says whether the bits are those that the host has compared.
TEST_P(DevicePathTest, TheHostReadsBackOneOfManyRunsThatGiveTheSameBits) {
  Prepare("b1.h2.q64.d16.f16.lse");
  int runs = 0;
  device_.kernels["right"] = RightThen([&](const FakeArguments&) { ++runs; });
  device_.downloaded = 0;
  EXPECT_TRUE(prepared_->CheckManyRuns(CandidateOf("right"), absl::Seconds(60))->ok());
  EXPECT_EQ(runs, 1000);
  const size_t output = 2 * 64 * 16 * sizeof(uint16_t) + 2 * 64 * sizeof(float) + 4 * GuardedBuffer::kLeastZone;
  // 2 of a case's 200 runs, and at the end one set of inputs.
  EXPECT_GE(device_.downloaded, 2 * 5 * output);
  EXPECT_LE(device_.downloaded, 2 * 5 * output + (1 << 20));
}

TEST_P(DevicePathTest, TheHostReadsBackManyRunsOnEitherPoison) {
  Prepare("b1.h1.q8.d16.f16");
  std::vector<size_t> downloaded;  // before each run
  std::vector<std::byte> poisons;  // that it found
  device_.kernels["right"] = [&, right = RightKernel(problem_)](const FakeArguments& a) {
    downloaded.push_back(device_.downloaded);
    poisons.push_back(*a.o.data);
    return right(a);
  };
  EXPECT_TRUE(prepared_->CheckManyRuns(CandidateOf("right"), absl::Seconds(60))->ok());
  ASSERT_EQ(poisons.size(), 1000U);
  std::vector<std::byte> read_back;  // of the first case's 200 runs
  for (size_t run = 0; run < 199; ++run) {
    if (downloaded[run + 1] > downloaded[run]) read_back.push_back(poisons[run]);
  }
  EXPECT_THAT(read_back, ::testing::ElementsAre(std::byte{0xFF}, std::byte{0x5A}));
}

TEST_P(DevicePathTest, TheHostFindsInTurnTheInputThatAnInspectorSaysIsIntactAndBlamesNobodyElse) {
  Prepare("b1.h1.q8.d16.f16");
  std::byte* input = nullptr;
  ASSERT_EQ(Check(RightThen([&](const FakeArguments& a) { input = a.k.data + 5; })).verdict(), v1::VERDICT_OK);
  const std::byte before = *input;
  std::map<size_t, std::vector<uint64_t>> first;  // by how many were asked for: all inputs at once are most
  device_.fake_inspector.spoil_digests = [&](std::vector<uint64_t>& digests) {
    if (digests.size() > 20) digests = first.try_emplace(digests.size(), digests).first->second;
  };
  device_.kernels["right"] = RightKernel(problem_);
  ASSERT_EQ(prepared_->Check(CandidateOf("right"), Look::kOnHost)->verdict(), v1::VERDICT_OK);
  *input = ~before;
  EXPECT_EQ(prepared_->Check(CandidateOf("right"), Look::kOnDevice)->verdict(), v1::VERDICT_OK);
  EXPECT_NE(*input, before);
  for (size_t i = 0; i < Distributions().size(); ++i) {
    EXPECT_EQ(prepared_->Check(CandidateOf("right"), Look::kOnHost)->verdict(), v1::VERDICT_OK) << i;
  }
  EXPECT_EQ(*input, before);
}

TEST_P(DevicePathTest, BothPathsFindTheSameErrors) {
  Prepare("b1.h2.q64.d16.f16");
  device_.kernels["right"] = RightKernel(problem_);
  const auto on_device = prepared_->Check(CandidateOf("right"), Look::kOnDevice);
  const auto on_host = prepared_->Check(CandidateOf("right"), Look::kOnHost);
  EXPECT_EQ(on_device->accuracy().SerializeAsString(), on_host->accuracy().SerializeAsString());
}

TEST_P(DevicePathTest, AStrayWriteToAReferenceIsFoundAndRepaired) {
  Prepare("b1.h1.q8.d16.f16");
  const FakePointer reference = Reference();
  ExpectVerdict(RightThen([reference](const FakeArguments&) { std::memset(reference.data, 0x33, 8); }),
                v1::VERDICT_OUT_OF_BOUNDS, "wrote to reference results");
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

TEST_P(DevicePathTest, AKernelThatMakesItsResultsTheReferenceIsFound) {
  Prepare("b1.h1.q8.d16.f16");
  const FakePointer reference = Reference();
  const worker::v1::TrialResponse response = Check(RightThen([reference](const FakeArguments& a) {
    std::memset(a.o.data, 0, a.o.size);
    std::memset(reference.data, 0, reference.size);
  }));
  EXPECT_EQ(response.verdict(), v1::VERDICT_OUT_OF_BOUNDS) << response.detail();
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

TEST_P(DevicePathTest, AStrayWriteToAReferenceIsFoundWhileTheHostLooks) {
  Prepare("b1.h1.q8.d16.f16");
  const FakePointer reference = Reference();
  device_.kernels["stray"] = RightThen([reference](const FakeArguments&) { std::memset(reference.data, 0x33, 8); });
  EXPECT_EQ(prepared_->Check(CandidateOf("stray"), Look::kOnHost)->verdict(), v1::VERDICT_OUT_OF_BOUNDS);
}

// At the first case's inputs and in turn at another's, and at one of the references in turn.
TEST_P(DevicePathTest, WhatAQuickCheckDoesNotSeeOfALargeProblemIsRepairedInTurnAndBlamedOnNobodyElse) {
  Prepare("b1.h1.q1.kv1000.d32.f16", /*large_bytes=*/0);
  std::byte* input = nullptr;
  ASSERT_EQ(Check(RightThen([&](const FakeArguments& a) { input = a.k.data + 5; })).verdict(), v1::VERDICT_OK);
  std::byte* const reference = device_.fake_inspector.references.back().data + 3;
  const std::byte input_before = *input, reference_before = *reference;
  const auto quick = [&](const char* name) {
    const auto once = [](const TimedCandidate& ran) { return ran.runnables().front()->Run(); };
    return prepared_->QuickCheck(CandidateOf(name), once)->verdict();
  };
  device_.kernels["right"] = RightKernel(problem_);
  device_.kernels["strays"] = RightThen([&](const FakeArguments&) {
    *input = ~input_before;  // of the last case; this is the second one's turn
    *reference = ~reference_before;
  });
  EXPECT_EQ(quick("strays"), v1::VERDICT_OK);
  EXPECT_NE(*input, input_before);
  EXPECT_NE(*reference, reference_before);
  for (size_t i = 1; i < Distributions().size(); ++i) EXPECT_EQ(quick("right"), v1::VERDICT_OK) << i;
  EXPECT_EQ(*input, input_before);
  EXPECT_EQ(*reference, reference_before);
}

TEST_P(DevicePathTest, AQuickCheckOfALargeProblemFindsInTurnWhatWroteToTheReferenceItNeeds) {
  Prepare("b1.h1.q1.kv1000.d32.f16", /*large_bytes=*/0);
  const FakePointer reference = Reference();
  device_.kernels["strays"] = RightThen([&](const FakeArguments&) { std::memset(reference.data, 0x33, 8); });
  const auto once = [](const TimedCandidate& ran) { return ran.runnables().front()->Run(); };
  EXPECT_EQ(prepared_->QuickCheck(CandidateOf("strays"), once)->verdict(), v1::VERDICT_OUT_OF_BOUNDS);
  device_.fake_inspector.compared = 0;
  device_.kernels["right"] = RightKernel(problem_);
  EXPECT_EQ(prepared_->QuickCheck(CandidateOf("right"), once)->verdict(), v1::VERDICT_OK);
  EXPECT_EQ(device_.fake_inspector.compared, 1);  // the reference is there again
}

TEST_P(DevicePathTest, AWrongResultIsFoundByTheHostsBlockEvenIfTheInspectorLies) {
  Prepare("b1.h1.q8.d16.f16");  // one block has all of it
  device_.fake_inspector.spoil_tally = [](device::Inspector::Tally& tally) { tally = {0, 0, 1}; };
  ExpectVerdict(RightThen([](const FakeArguments& a) { a.o.as<uint16_t>()[77] = 0x4c00; }), v1::VERDICT_WRONG_RESULT,
                "1 of 128 elements are wrong");
}

TEST_P(DevicePathTest, AnInspectorThatAccusesWronglyHasNoSay) {
  Prepare("b1.h1.q8.d16.f16");
  device_.fake_inspector.spoil_tally = [](device::Inspector::Tally& tally) { tally.wrong = 3; };
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
}

TEST_P(DevicePathTest, WithoutRoomForReferencesTheHostLooks) {
  device_.properties.set_memory_bytes(100'000);
  Prepare("b1.h2.q64.d16.f16");
  device_.fake_inspector.compared = 0;
  EXPECT_EQ(Check(RightKernel(problem_)).verdict(), v1::VERDICT_OK);
  EXPECT_EQ(device_.fake_inspector.compared, 0);
}

TEST_P(DevicePathTest, AReferenceThatIsNotFiniteIsNoWildcard) {
  const Problem problem = *ParseProblem("b1.h1.q8.d16.f16");
  for (const char* kernel : {"exact", "plain"}) {
    const worker::v1::PrepareRequest request = PrepareOn(device_, problem);
    device_.kernels[kernel] = [right = device_.kernels[kernel]](const FakeArguments& a) {
      absl::Status status = right(a);
      a.o.as<uint32_t>()[9] = 0x7f800000;
      return status;
    };
    const absl::Status status = PreparedProblem::Create(device_, problem, request, device_.inspector()).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("reference kernel's O has element 9 = inf")) << kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Looked, DevicePathTest, ::testing::Values(Look::kOnDevice), NameOf);

}  // namespace
}  // namespace attune::verify
