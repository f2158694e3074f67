// The check kernels, compiled for the host, against the host's own code; and that each way to disagree is seen.
#include "server/verify/inspection.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/case_inputs.h"
#include "server/verify/digest.h"
#include "server/verify/testing/fake_device.h"

namespace attune::verify {
namespace {

using ::testing::HasSubstr;

class InspectorTest : public ::testing::Test {
 protected:
  InspectorTest() { device_.inspects = true; }

  void ExpectDisagreement(const char* what) {
    const absl::Status status = CheckInspector(device_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  FakeDevice device_;
};

TEST_F(InspectorTest, TheCheckKernelsAgreeWithTheHost) {
  const absl::Status status = CheckInspector(device_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(device_.allocated, 0);
}

TEST_F(InspectorTest, OneElementThatIsDrawnOtherwiseIsSeen) {
  device_.fake_inspector.spoil_drawn = [](FakePointer drawn) { drawn.data[drawn.size - 1] ^= std::byte{1}; };
  ExpectDisagreement("drawn inputs");
}

TEST_F(InspectorTest, OneWrongDigestIsSeen) {
  device_.fake_inspector.spoil_digests = [](std::vector<uint64_t>& digests) { digests.back() += 1; };
  ExpectDisagreement("digests");
}

TEST_F(InspectorTest, EachWrongFigureOfAComparisonIsSeen) {
  using Tally = device::Inspector::Tally;
  device_.fake_inspector.spoil_tally = [](Tally& tally) { tally.wrong -= 1; };
  ExpectDisagreement("compared outputs");
  device_.fake_inspector.spoil_tally = [](Tally& tally) { tally.max_error *= 0.999f; };
  ExpectDisagreement("compared outputs");
  device_.fake_inspector.spoil_tally = [](Tally& tally) { tally.max_reference *= 0.999f; };
  ExpectDisagreement("compared outputs");
}

TEST_F(InspectorTest, ACopyThatEndsTooSoonIsSeen) {
  device_.fake_inspector.spoil_copied = [](FakePointer copied) { copied.data[copied.size - 1] ^= std::byte{1}; };
  ExpectDisagreement("copies");
}

TEST(Digest, ChangesWithEveryByteItsPlaceAndTheKey) {
  std::vector<std::byte> bytes(1003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const uint64_t digest = DigestOf(bytes, 5);
  EXPECT_NE(digest, DigestOf(bytes, 6));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    EXPECT_NE(DigestOf(bytes, 5), digest) << i;
    bytes[i] ^= std::byte{0x10};
  }
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  EXPECT_NE(DigestOf(bytes, 5), digest);
}

TEST(Digest, OfOneValueIsThatOfItsBytes) {
  EXPECT_EQ(DigestOf(std::byte{0xFF}, 77, 9), DigestOf(std::vector<std::byte>(77, std::byte{0xFF}), 9));
}

// Whether they are drawn now or later, in parts or element by element, inputs are the same.
TEST(PlannedInputs, AreTheSameHoweverTheyAreDrawn) {
  for (const char* text : {"b2.h4.kvh2.q5.kv33.d20.f16", "b1.h2.q64.d6.bf16", "b3.h2.q9.kv20.d16.f16.varlen.page8",
                           "b2.h4.kvh2.q5.kv33.d32.bf16.kve4m3", "b3.h2.q9.kv20.d16.f16.causal-br.varlen"}) {
    const Problem problem = *ParseProblem(text);
    for (const Distribution distribution : Distributions()) {
      for (const Rows rows : {Rows::kOwn, Rows::kChanged}) {
        const Tensors now = PlanInputs(problem, distribution, 7, rows, /*holds_all=*/true).host;
        const CaseInputs planned = PlanInputs(problem, distribution, 7, rows, /*holds_all=*/false);
        const Tensors later = OnHost(planned);
        EXPECT_EQ(now.q, later.q) << text;
        EXPECT_EQ(now.k, later.k) << text;
        EXPECT_EQ(now.v, later.v) << text;
        if (planned.k == nullptr) continue;
        std::vector<uint16_t> part(now.k.size() - 8);
        planned.k->Fill(8, absl::MakeSpan(part));
        EXPECT_TRUE(std::equal(part.begin(), part.end(), now.k.begin() + 8)) << text;
        for (size_t i = 0; i < now.k.size(); ++i) ASSERT_EQ(planned.k->at(static_cast<int64_t>(i)), now.k[i]) << text;
      }
    }
  }
}

TEST(PlannedInputs, AreNotHeldWhereTheDeviceCanDrawThem) {
  const CaseInputs inputs = PlanInputs(*ParseProblem("b1.h2.q64.d64.f16"), Distribution::kNormal, 7, Rows::kOwn, false);
  EXPECT_TRUE(inputs.host.q.empty() && inputs.host.k.empty() && inputs.host.v.empty());
  ASSERT_NE(inputs.q, nullptr);
  EXPECT_EQ(inputs.q->elements(), 2 * 64 * 64);
}

}  // namespace
}  // namespace attune::verify
