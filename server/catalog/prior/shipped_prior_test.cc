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

using ::testing::ElementsAre;
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
      table_.parameters.push_back(parameters[i].name());
      if (parameters[i].name() == "KV_SPLITS") variant.values[static_cast<size_t>(i)] = 8;
    }
    fastest_ = variant.ToText();
    const space::Variant guess = *space::Guess(family_, *ParseProblem(kTuned), device_);
    table_.device_model = "NVIDIA H200";
    table_.compute_capability = 90;
    table_.family = family_->name();
    table_.source_hash = family_->source_hash;
    table_.tuned.push_back({*ParseProblem(kTuned), 10, {{9.5, variant.values}, {12, guess.values}}});
  }

  AnswerPtr Nearest(const std::string& problem) {
    return MakeNearest(PriorAnswers({table_}, device_, v1::POLICY_HOT, host_.families), *ParseProblem(problem), device_,
                       v1::POLICY_HOT, host_, nullptr);
  }

  v1::Device device_;
  Host host_;
  std::shared_ptr<const space::Family> family_;
  PriorTable table_;
  std::string fastest_;
};

TEST_F(ShippedPriorTest, IsReadAsItWasWritten) {
  const auto read = ParsePrior(ToText(table_));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToText(*read), ToText(table_));
  ASSERT_THAT(read->tuned, SizeIs(1));
  EXPECT_EQ(read->tuned[0].problem, table_.tuned[0].problem);
  EXPECT_EQ(read->tuned[0].level_us, 10);
  ASSERT_THAT(read->tuned[0].rows, SizeIs(2));
  EXPECT_EQ(read->tuned[0].rows[1].us, 12);
  EXPECT_EQ(read->tuned[0].rows[1].values, table_.tuned[0].rows[1].values);
}

TEST_F(ShippedPriorTest, SaysWhatIsWrongWithALine) {
  const std::string good =
      "device a card\ncompute_capability 90\nfamily tiles source\nparameters BLOCK SPLITS\n"
      "problem b1.h1.q64.d64.f16 10.5\n9.5 16 2\n";
  ASSERT_TRUE(ParsePrior(good).ok());
  const auto wrong = [&](const std::string& more) { return std::string(ParsePrior(good + more).status().message()); };
  EXPECT_EQ(wrong("10 16"), "line 7: a row is MICROSECONDS and 2 values");
  EXPECT_EQ(wrong("10 16 many"), "line 7: values are whole numbers, and not many");
  EXPECT_EQ(wrong("-3 16 2"), "line 7: microseconds are above 0");
  EXPECT_EQ(wrong("nan 16 2"), "line 7: microseconds are above 0");
  EXPECT_EQ(wrong("9 16 2"), "line 7: the rows of a problem are in the order of their times");
  EXPECT_EQ(wrong("problem b1.h1.q64.d64.f16"), "line 7: problem is followed by PROBLEM LEVEL_US");
  EXPECT_THAT(wrong("problem b1.h1 3"), HasSubstr("line 7: "));
  EXPECT_EQ(wrong("problem b2.h1.q64.d64.f16 0"), "line 7: microseconds are above 0");
  EXPECT_EQ(wrong("problem b2.h1.q64.d64.f16 3"), "b2.h1.q64.d64.f16 has no row");
  EXPECT_EQ(wrong("policy warm"), "line 7: policy is hot, l2-warm or cold");
  EXPECT_EQ(wrong("parameters BLOCK"), "line 7: parameters come before the first problem");
  EXPECT_EQ(ParsePrior("parameters BLOCK\n3 16").status().message(),
            "line 2: a row belongs to a problem; none is named yet");
  EXPECT_THAT(ParsePrior("device a card\n").status().message(), HasSubstr("missing"));
}

TEST_F(ShippedPriorTest, AFreshInstallAnswersFromIt) {
  for (const std::string problem : {kTuned, "b4.h32.kvh4.q1.kv4000.d64.bf16"}) {
    const AnswerPtr answer = Nearest(problem);
    ASSERT_NE(answer, nullptr) << problem;
    EXPECT_EQ(answer->variant->ToText(), fastest_);
    EXPECT_EQ(answer->response.provenance(), v1::PROVENANCE_NEAREST);
    EXPECT_EQ(answer->response.provenance_detail(),
              absl::StrCat("from ", kTuned, "; tuned on an NVIDIA H200 before this server was shipped, and not here"));
    EXPECT_FALSE(answer->response.has_timing()) << "nobody has timed it here";
    EXPECT_GT(answer->response.predicted().us(), 0);
    EXPECT_DOUBLE_EQ(answer->response.predicted().high_us(), 2 * answer->response.predicted().us());
    EXPECT_FALSE(answer->timed_by.has_value());
  }
}

TEST_F(ShippedPriorTest, SaysHowLongWhatIsExpectedWillTake) {
  const Forecast forecast = {*space::ParseVariant(fastest_, host_.families.Now()), 30, 66, 60};
  const auto expected = [&] {
    return MakeExpected(PriorAnswers({table_}, device_, v1::POLICY_HOT, host_.families), forecast,
                        *ParseProblem("b4.h32.kvh4.q1.kv4000.d64.bf16"), device_, v1::POLICY_HOT, host_, nullptr);
  };
  const AnswerPtr answer = expected();
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(
      answer->response.provenance_detail(),
      absl::StrCat("expected to be the fastest of 30 variants, from the trials of 66 problems, 60 of them tuned before "
                   "this server was shipped; its time is predicted from ",
                   kTuned, ", tuned on an NVIDIA H200 before this server was shipped"));
  EXPECT_GT(answer->response.predicted().us(), 0);
  EXPECT_DOUBLE_EQ(answer->response.predicted().high_us(), 2 * answer->response.predicted().us());
  table_.device_model = device_.model();
  EXPECT_LT(expected()->response.predicted().high_us(), 2 * answer->response.predicted().us()) << "of the same model";
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

TEST_F(ShippedPriorTest, TeachesTheModelThatItWasTunedOn) {
  table_.device_model = device_.model();
  const std::vector<PriorTable> tables = {table_};
  const std::vector<ShippedProblem> shipped = ShippedFor(tables, device_, v1::POLICY_HOT);
  ASSERT_THAT(shipped, SizeIs(1));
  EXPECT_EQ(ToText(shipped[0].problem()), kTuned);
  const TunedProblem tuned = shipped[0].Read(host_.families.Now());
  EXPECT_EQ(tuned.problem, table_.tuned[0].problem);
  EXPECT_EQ(tuned.level_us, 10);
  EXPECT_THAT(tuned.us, ElementsAre(9.5, 12));
  ASSERT_THAT(tuned.variants, SizeIs(2));
  EXPECT_EQ(tuned.variants[0].ToText(), fastest_);
  EXPECT_THAT(ShippedFor(tables, device_, v1::POLICY_COLD), IsEmpty());
  EXPECT_THAT(ShippedFor(tables, *DeviceProfile("h200"), v1::POLICY_HOT), IsEmpty());
  table_.source_hash = "another";
  const std::vector<PriorTable> old = {table_};
  EXPECT_THAT(ShippedFor(old, device_, v1::POLICY_HOT)[0].Read(host_.families.Now()).variants, IsEmpty());
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
  for (const PriorTable& table : ShippedPriors()) EXPECT_FALSE(table.tuned.empty());
}

TEST(LearnedOf, HasTheFastestAndSomeOfTheRest) {
  std::vector<space::Variant> variants(660);
  std::vector<double> us;
  for (size_t i = 0; i < variants.size(); ++i) {
    variants[i].values = {static_cast<int64_t>(i)};
    us.push_back(100 + static_cast<double>(i));
  }
  const TunedProblem learned = LearnedOf(*ParseProblem(kTuned), variants, us);
  EXPECT_EQ(ToText(learned.problem), kTuned);
  ASSERT_THAT(learned.us, SizeIs(120));
  EXPECT_EQ(learned.us[59], 159);
  EXPECT_EQ(learned.us.back(), 750);
  EXPECT_THAT(learned.variants.back().values, ElementsAre(650));
  EXPECT_EQ(learned.level_us, 133) << "the 34th of the 66 fastest";
  EXPECT_EQ(LearnedOf(*ParseProblem(kTuned), {}, {}).level_us, 0);
  EXPECT_EQ(LevelOf({1, 2, 3}), 2);
  EXPECT_EQ(LevelOf({1, 2, 3, 4, 5, 6, 7}), 3) << "five, where a tenth is fewer";
}

}  // namespace
}  // namespace attune::catalog
