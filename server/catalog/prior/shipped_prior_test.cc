#include "server/catalog/prior/shipped_prior.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/base/device_profile.h"
#include "server/catalog/answers/derived_answer.h"
#include "server/catalog/testing/results_fixture.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTuned[] = "b4.h32.kvh4.q1.kv3000.d64.bf16";

class ShippedPriorTest : public ::testing::Test {
 protected:
  ShippedPriorTest() : device_(*DeviceProfile("h100")) {
    host_.families = *space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    host_.devices = {device_};
    for (const auto& family : host_.families.Now()) {
      if (family->name() == "attention_mma") family_ = family;
    }
    space::Variant variant = *space::Guess(family_, *ParseProblem(kTuned), device_);
    const auto& parameters = family_->manifest.parameters();
    for (int i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name() == "KV_SPLITS") variant.values[static_cast<size_t>(i)] = 8;
    }
    table_.device_model = "NVIDIA H200";
    table_.compute_capability = 90;
    table_.family = family_->name();
    table_.source_hash = family_->source_hash;
    table_.rows.push_back({*ParseProblem(kTuned), 9.5, variant.ToText()});
  }

  AnswerPtr Nearest(const std::string& problem) {
    return MakeNearest(PriorAnswers({table_}, device_, v1::POLICY_HOT, host_.families), *ParseProblem(problem), device_,
                       v1::POLICY_HOT, host_, nullptr);
  }

  v1::Device device_;
  Host host_;
  std::shared_ptr<const space::Family> family_;
  PriorTable table_;
};

TEST_F(ShippedPriorTest, IsReadAsItWasWritten) {
  const auto read = ParsePrior(ToText(table_));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToText(*read), ToText(table_));
  ASSERT_THAT(read->rows, SizeIs(1));
  EXPECT_EQ(read->rows[0].problem, table_.rows[0].problem);
}

TEST_F(ShippedPriorTest, SaysWhatIsWrongWithALine) {
  const std::string good = ToText(table_);
  EXPECT_THAT(ParsePrior(good + "b1.h1 3 tiles").status().message(), HasSubstr("line 7: "));
  EXPECT_THAT(ParsePrior(good + "policy warm").status().message(), HasSubstr("policy is hot, l2-warm or cold"));
  EXPECT_THAT(ParsePrior(absl::StrCat(good, kTuned, " -3 tiles")).status().message(), HasSubstr("above 0"));
  EXPECT_THAT(ParsePrior("device a card\n").status().message(), HasSubstr("missing"));
}

TEST_F(ShippedPriorTest, AFreshInstallAnswersFromIt) {
  for (const std::string problem : {kTuned, "b4.h32.kvh4.q1.kv4000.d64.bf16"}) {
    const AnswerPtr answer = Nearest(problem);
    ASSERT_NE(answer, nullptr) << problem;
    EXPECT_EQ(answer->variant->ToText(), table_.rows[0].variant);
    EXPECT_EQ(answer->response.provenance(), v1::PROVENANCE_NEAREST);
    EXPECT_EQ(answer->response.provenance_detail(),
              absl::StrCat("from ", kTuned, "; tuned on an NVIDIA H200 before this server was shipped, and not here"));
    EXPECT_FALSE(answer->response.has_timing()) << "nobody has timed it here";
    EXPECT_GT(answer->response.predicted().us(), 0);
    EXPECT_DOUBLE_EQ(answer->response.predicted().high_us(), 2 * answer->response.predicted().us());
    EXPECT_FALSE(answer->timed_by.has_value());
  }
}

// Three octaves of another model, four of the same.
TEST_F(ShippedPriorTest, AnotherModelCountsLess) {
  constexpr char kFar[] = "b4.h32.kvh4.q1.kv36000.d64.bf16";
  EXPECT_EQ(Nearest(kFar), nullptr);
  table_.device_model = device_.model();
  EXPECT_NE(Nearest(kFar), nullptr);
  EXPECT_EQ(Nearest("b4.h32.kvh4.q1.kv96000.d64.bf16"), nullptr);
}

TEST_F(ShippedPriorTest, WhatWasTunedHereCountsMore) {
  std::vector<AnswerPtr> known = PriorAnswers({table_}, device_, v1::POLICY_HOT, host_.families);
  auto own = std::make_shared<Answer>(*known[0]);
  own->problem = *ParseProblem("b4.h32.kvh4.q1.kv9000.d64.bf16");
  own->response.set_trial("trials/1");
  known.push_back(own);
  const AnswerPtr answer =
      MakeNearest(known, *ParseProblem(kTuned), device_, v1::POLICY_HOT, host_, /*supply=*/nullptr);
  ASSERT_NE(answer, nullptr);
  EXPECT_THAT(answer->response.provenance_detail(), HasSubstr("from b4.h32.kvh4.q1.kv9000.d64.bf16"));
}

TEST_F(ShippedPriorTest, IsOfTodaysSourcesTheSameArchitectureAndThePolicy) {
  const auto answers = [&](v1::Policy policy) { return PriorAnswers({table_}, device_, policy, host_.families); };
  EXPECT_THAT(answers(v1::POLICY_HOT), SizeIs(1));
  EXPECT_THAT(answers(v1::POLICY_COLD), IsEmpty());
  EXPECT_THAT(PriorAnswers({table_}, *DeviceProfile("l4"), v1::POLICY_HOT, host_.families), IsEmpty());
  table_.source_hash = "another";
  EXPECT_THAT(answers(v1::POLICY_HOT), IsEmpty());
}

// A prior of one family does not know how fast the others are.
TEST_F(ShippedPriorTest, GivesWayToTheGuessOfAnotherFamily) {
  auto other = std::make_shared<space::Family>();
  other->manifest = family_->manifest;
  other->manifest.set_name("zz_faster");
  other->manifest.set_guess_precedence(100);
  other->sources = family_->sources;
  other->source_hash = "other";
  ASSERT_NE(Nearest(kTuned), nullptr);
  host_.families.Add(other);
  EXPECT_EQ(Nearest(kTuned), nullptr);
}

using ShippedResultsTest = ResultsTest;

TEST_F(ShippedResultsTest, AreAskedWhereNothingWasTuned) {
  Host host = FakeHost();
  host.devices = {*DeviceProfile("h100")};
  host.families = *space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  const auto results = Open(host);
  v1::GetBestRequest request = Ask(kTuned);
  request.set_device_id(host.devices[0].id());
  const auto best = results->GetBest(request);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_THAT(best->provenance_detail(), HasSubstr("before this server was shipped"));
  EXPECT_FALSE(results->IsTuned({kTuned, host.devices[0].fingerprint(), v1::POLICY_HOT}));
  EXPECT_THAT(results->Nearby(*ParseProblem(kTuned), host.devices[0], v1::POLICY_HOT, 1), SizeIs(1));
  EXPECT_THAT(results->Nearby(*ParseProblem(kTuned), host.devices[0], v1::POLICY_COLD, 1), IsEmpty());
  request.set_policy(v1::POLICY_COLD);
  EXPECT_EQ(results->GetBest(request)->provenance(), v1::PROVENANCE_HEURISTIC);
}

TEST(ShippedPriors, CanBeRead) {
  EXPECT_THAT(ShippedPriors(), SizeIs(2));
  for (const PriorTable& table : ShippedPriors()) EXPECT_FALSE(table.rows.empty());
}

}  // namespace
}  // namespace attune::catalog
