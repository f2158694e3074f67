#include "client/replay/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "client/replay/likeness.h"
#include "server/base/device_profile.h"
#include "server/space/family.h"

namespace attune::replay {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr char kShort[] = "b1.h1.q64.kv2048.d64.f16";
constexpr char kMiddle[] = "b1.h1.q64.kv4096.d64.f16";
constexpr char kLong[] = "b1.h1.q64.kv8192.d64.f16";

// Problems of one CTA a head, whose keys are split: the guess of attention_mma for one of them with other splits.
class NearestTest : public ::testing::Test {
 protected:
  NearestTest() : families_(*space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src")), device_(*DeviceProfile("h100")) {
    std::erase_if(families_, [](const auto& family) { return family->name() != "attention_mma"; });
  }

  // `us[i]`: the time with 2^i splits; 0: it failed.
  v1::Recording RecordingOf(const std::string& problem, const std::vector<double>& us) const {
    v1::Recording recording;
    recording.set_problem(problem);
    recording.set_device_class("class");
    v1::Family& family = *recording.add_families();
    family.set_name(families_[0]->name());
    family.set_source_hash(families_[0]->source_hash);
    const space::Variant guess = *space::Guess(families_[0], *ParseProblem(kMiddle), device_);
    for (const auto& parameter : families_[0]->manifest.parameters()) family.add_parameters(parameter.name());
    for (size_t i = 0; i < us.size(); ++i) {
      v1::Row& row = *recording.add_rows();
      row.set_verdict(us[i] > 0 ? attune::v1::VERDICT_OK : attune::v1::VERDICT_WRONG_RESULT);
      row.set_median_us(us[i]);
      for (size_t p = 0; p < guess.values.size(); ++p) {
        const std::string& name = family.parameters(static_cast<int>(p));
        int64_t value = guess.values[p];
        if (name == "KV_SPLITS") value = int64_t{1} << i;
        if (name == "COMBINE") value = i == 0 ? 0 : 2;
        row.add_values(value);
      }
    }
    return recording;
  }
  TunedProblem TunedOf(const std::string& problem, const std::vector<double>& us) const {
    const search::FeatureColumns columns(families_);
    auto tuned = TunedProblemOf(RecordingOf(problem, us), families_, columns, device_);
    EXPECT_TRUE(tuned.ok()) << tuned.status();
    return *std::move(tuned);
  }

  std::vector<std::shared_ptr<const space::Family>> families_;
  attune::v1::Device device_;
};

// Answers the variant with a number, and remembers what it has seen.
class Fixed : public AnswerRule {
 public:
  explicit Fixed(std::optional<size_t> variant, double predicted_us = 0)
      : variant_(variant), predicted_us_(predicted_us) {}

  std::string name() const override { return "fixed"; }
  void Learn(const std::vector<const TunedProblem*>& tuned) override {
    learned_.clear();
    for (const TunedProblem* one : tuned) learned_.insert(ToText(one->choices.problem));
  }
  std::optional<RuleAnswer> Answer(const Choices& choices) const override {
    EXPECT_FALSE(learned_.contains(ToText(choices.problem))) << "it knows what it is asked for";
    EXPECT_FALSE(learned_.empty());
    if (!variant_.has_value()) return std::nullopt;
    space::Variant variant = choices.variants[std::min(*variant_, choices.variants.size() - 1)];
    if (*variant_ >= choices.variants.size()) variant.values[0] += 1;
    return RuleAnswer{variant, predicted_us_};
  }

 private:
  const std::optional<size_t> variant_;
  const double predicted_us_;
  std::set<std::string> learned_;
};

TEST_F(NearestTest, HoldsAnswersAgainstWhatWasRecorded) {
  const std::vector<TunedProblem> problems = {TunedOf(kShort, {30, 20, 0}), TunedOf(kMiddle, {60, 40, 50})};
  std::vector<std::unique_ptr<AnswerRule>> rules;
  rules.push_back(std::make_unique<Fixed>(0, 59));
  rules.push_back(std::make_unique<Fixed>(1, 100));
  rules.push_back(std::make_unique<Fixed>(2));
  rules.push_back(std::make_unique<Fixed>(3));
  rules.push_back(std::make_unique<Fixed>(std::nullopt));
  const AnswerTable table =
      HoldOut(problems, OneByOne({problems[0].choices.problem, problems[1].choices.problem}), rules);
  EXPECT_EQ(
      Markdown(table),
      "| rule | asked | answered | unknown | failed | regret, median | 95th | worst | not slower than fixed | worst "
      "against it | time within 2x |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
      "| fixed | 2 | 100 % | 0 | 0 | 50.0 % | 50.0 % | 50.0 % | 100 % | 0.0 % | 100 % |\n"
      "| fixed | 2 | 100 % | 0 | 0 | 0.0 % | 0.0 % | 0.0 % | 100 % | -33.3 % | 0 % |\n"
      "| fixed | 2 | 100 % | 0 | 1 | 25.0 % | 25.0 % | 25.0 % | 100 % | -16.7 % | - |\n"
      "| fixed | 2 | 100 % | 2 | 0 | - | - | - | - | - | - |\n"
      "| fixed | 2 | 0 % | 0 | 0 | - | - | - | - | - | - |\n");
  EXPECT_THAT(MarkdownOfRows(table),
              HasSubstr(absl::StrCat("| ", kShort, " | 50.0 % | 0.0 % | failed | unknown | - |")));
}

TEST_F(NearestTest, TheDaemonsRulesAnswerAsTheDaemonDoes) {
  const TunedProblem near = TunedOf(kMiddle, {60, 40, 30, 20, 25});
  const TunedProblem asked = TunedOf(kLong, {120, 80, 60, 40, 50});
  const auto heuristic = HeuristicRule(families_, device_);
  heuristic->Learn({});
  ASSERT_TRUE(heuristic->Answer(asked.choices).has_value());
  EXPECT_EQ(heuristic->Answer(asked.choices)->variant.ToText(),
            space::Guess(families_[0], asked.choices.problem, device_)->ToText());
  const auto nearest = NearestRule(families_, device_);
  nearest->Learn({});
  EXPECT_FALSE(nearest->Answer(asked.choices).has_value());
  nearest->Learn({&near});
  const auto answer = nearest->Answer(asked.choices);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->variant.ToText(), space::Refit(near.choices.variants[3], asked.choices.problem, device_)->ToText());
  EXPECT_THAT(answer->predicted_us, DoubleNear(40, 10)) << "twice the keys, but for the launch";
}

// Another model counts three octaves more (server/catalog/answers/derived_answer.cc).
TEST_F(NearestTest, WhatWasShippedAnswersForWhatIsNear) {
  const TunedProblem tuned = TunedOf(kShort, {60, 40, 30, 20, 25});
  const auto shipped = ShippedRule(families_, device_);
  shipped->Learn({&tuned});
  const auto served = ServedRule(families_, device_);
  served->Learn({&tuned});
  const TunedProblem near = TunedOf("b2.h2.q64.kv2048.d64.f16", {1, 1, 1, 1, 1});
  const TunedProblem far = TunedOf("b4.h4.q64.kv2048.d64.f16", {1, 1, 1, 1, 1});
  EXPECT_EQ(shipped->Answer(near.choices)->variant.ToText(), served->Answer(near.choices)->variant.ToText());
  EXPECT_GT(shipped->Answer(near.choices)->predicted_us, 0);
  EXPECT_GT(served->Answer(far.choices)->predicted_us, 0);
  EXPECT_EQ(shipped->Answer(far.choices)->predicted_us, 0) << "the guess";
}

TEST_F(NearestTest, WhatOthersFoundFastIsTheAnswer) {
  const TunedProblem near = TunedOf(kShort, {60, 40, 30, 20, 25, 40, 50});
  const TunedProblem far = TunedOf(kMiddle, {120, 80, 60, 42, 55, 80, 100});
  const TunedProblem asked = TunedOf(kLong, {1, 1, 1, 1, 1, 1, 1});
  std::vector<std::unique_ptr<AnswerRule>> rules;
  rules.push_back(NeighboursMeanRule());
  const auto model = std::make_shared<SharedModel>(families_, device_, /*least=*/5);
  for (Among among : {Among::kAll, Among::kNearWinners}) rules.push_back(ModelRule(among, model, device_));
  rules.push_back(ForecastRule(model, families_, device_));
  for (const auto& rule : rules) {
    rule->Learn({&near, &far});
    const auto answer = rule->Answer(asked.choices);
    ASSERT_TRUE(answer.has_value()) << rule->name();
    EXPECT_EQ(answer->variant.ToText(), asked.choices.variants[3].ToText()) << rule->name();
  }
}

TEST_F(NearestTest, OfAProblemLikeNoneTheGuessIsTheAnswer) {
  const TunedProblem one = TunedOf(kShort, {60, 40, 30, 20, 25, 40, 50});
  const TunedProblem two = TunedOf(kMiddle, {120, 80, 60, 42, 55, 80, 100});
  const auto forecast =
      ForecastRule(std::make_shared<SharedModel>(families_, device_, /*least=*/5), families_, device_);
  forecast->Learn({&one, &two});
  const TunedProblem far = TunedOf("b2.h2.q16384.d64.f16", {1, 1, 1, 1, 1, 1, 1});
  const auto answer = forecast->Answer(far.choices);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->variant.ToText(), space::Guess(families_[0], far.choices.problem, device_)->ToText());
}

TEST_F(NearestTest, WhatTheCompilerRulesOutIsNoAnswer) {
  const TunedProblem near = TunedOf(kShort, {60, 40, 30, 20, 25});
  v1::Recording recording = RecordingOf(kLong, {120, 80, 60, 40, 50});
  recording.mutable_rows(3)->set_verdict(attune::v1::VERDICT_INFEASIBLE);
  const search::FeatureColumns columns(families_);
  const auto asked = TunedProblemOf(recording, families_, columns, device_);
  ASSERT_TRUE(asked.ok()) << asked.status();
  const auto rule = NeighboursMeanRule();
  rule->Learn({&near});
  EXPECT_EQ(rule->Answer(asked->choices)->variant.ToText(), asked->choices.variants[4].ToText());
}

TEST_F(NearestTest, TheSameRecordingsGiveTheSameTables) {
  const std::vector<v1::Recording> recordings = {RecordingOf(kShort, {60, 40, 30, 20, 25}),
                                                 RecordingOf(kMiddle, {120, 80, 60, 42, 55}),
                                                 RecordingOf(kLong, {240, 160, 120, 80, 100})};
  const auto tables = CompareAnswers(recordings, {}, families_, device_);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_THAT(*tables, HasSubstr("| model | 3 | 100 % |"));
  EXPECT_EQ(*tables, *CompareAnswers(recordings, {}, families_, device_));
}

// What is asked for is left out of the prior.
TEST_F(NearestTest, AnswersFromWhatAnotherCardHasTimed) {
  const std::vector<TunedProblem> prior = {TunedOf(kShort, {60, 40, 30, 20, 25}),
                                           TunedOf(kMiddle, {20, 120, 80, 60, 80})};
  const std::vector<TunedProblem> problems = {TunedOf(kMiddle, {120, 80, 60, 40, 50}),
                                              TunedOf(kLong, {99, 98, 97, 96, 95})};
  std::vector<std::unique_ptr<AnswerRule>> rules;
  rules.push_back(NeighboursMeanRule());
  const AnswerTable table = AnswerFrom(prior, problems, rules);
  ASSERT_EQ(table.rows.size(), 2);
  EXPECT_EQ(table.rows[0].answers[0].regret, 0) << "of kShort's times alone";
  EXPECT_GT(table.rows[1].answers[0].regret, 0.04) << "of kMiddle's above all, whose first is the fastest";
  const std::vector<v1::Recording> here = {RecordingOf(kMiddle, {120, 80, 60}), RecordingOf(kLong, {240, 160, 120})};
  v1::Recording there = RecordingOf(kShort, {60, 40, 30});
  there.set_device_class("another");
  there.set_device_model("a card");
  const auto text = CompareAnswers(here, {there}, families_, device_);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Nothing tuned here, learned on a card\n"));
}

TEST_F(NearestTest, RefusesWhatCannotBeCompared) {
  const v1::Recording one = RecordingOf(kShort, {60, 40});
  EXPECT_THAT(CompareAnswers({one}, {}, families_, device_).status().message(), HasSubstr("two recordings or more"));
  v1::Recording other = RecordingOf(kMiddle, {60, 40});
  other.set_device_class("another");
  EXPECT_THAT(CompareAnswers({one, other}, {}, families_, device_).status().message(),
              HasSubstr("another class of device"));
  other = RecordingOf(kMiddle, {60, 40});
  other.set_policy(attune::v1::POLICY_COLD);
  EXPECT_THAT(CompareAnswers({one, other}, {}, families_, device_).status().message(), HasSubstr("another policy"));
  other = RecordingOf(kMiddle, {60, 40});
  other.mutable_families(0)->set_source_hash("another");
  EXPECT_THAT(CompareAnswers({one, other}, {}, families_, device_).status().message(),
              HasSubstr("other sources of attention_mma"));
  EXPECT_EQ(CompareAnswers({other, other}, {}, families_, device_).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Unlikeness, ComparesProblemsOfOtherCodeToo) {
  const Problem a = *ParseProblem("b2.h8.q512.d64.f16");
  EXPECT_EQ(Unlikeness(a, a), 0);
  EXPECT_EQ(Unlikeness(a, *ParseProblem("b4.h4.q1024.kv512.d64.f16")), 1);
  EXPECT_EQ(Unlikeness(a, *ParseProblem("b2.h8.q512.d128.f16")), 2);
  EXPECT_EQ(Unlikeness(a, *ParseProblem("b2.h8.q512.d64.bf16.causal")), 1.5);
}

}  // namespace
}  // namespace attune::replay
