#include "client/cli/portfolio.h"

#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "client/cli/testing/fake_world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Decoding with these lengths; us by [length][variant].
PortfolioTimes Decoding(const std::vector<int64_t>& lengths, std::vector<std::vector<double>> us) {
  PortfolioTimes times;
  for (size_t i = 0; i < lengths.size(); ++i) {
    times.problems.push_back(*ParseProblem(absl::StrCat("b1.h8.q1.kv", lengths[i], ".d64.f16")));
    times.weights.push_back(1);
    double best = 0;
    for (double one : us[i]) {
      if (one > 0) best = best > 0 ? std::min(best, one) : one;
    }
    times.best_us.push_back(best);
  }
  for (size_t i = 0; i < us.front().size(); ++i) times.variants.push_back(absl::StrCat("v:", i));
  times.us = std::move(us);
  return times;
}

TEST(CandidatesOf, AreTheFastestOfEachProblem) {
  EXPECT_THAT(CandidatesOf({{{"a", 1}, {"b", 2}, {"c", 3}}, {{"c", 5}, {"d", 4}, {"a", 6}}}, 2),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(CandidatesOf({{{"a", 1}, {"b", 2}}, {}}, 1), ElementsAre("a"));
}

// The best is of all that were timed, candidates or not.
TEST(TimesOfCandidates, HasATimeOfEachCandidateWhereThereIsOne) {
  const Problem problem = *ParseProblem("b1.h8.q1.kv64.d64.f16");
  const PortfolioTimes times = TimesOfCandidates({problem, problem}, {1, 3}, {{{"a", 2}, {"b", 1}}, {}}, {"a", "c"});
  EXPECT_THAT(times.weights, ElementsAre(1, 3));
  EXPECT_THAT(times.variants, ElementsAre("a", "c"));
  EXPECT_THAT(times.best_us, ElementsAre(1, PortfolioTimes::kUnknown));
  EXPECT_THAT(times.us, ElementsAre(ElementsAre(2, PortfolioTimes::kUnknown),
                                    ElementsAre(PortfolioTimes::kUnknown, PortfolioTimes::kUnknown)));
}

TEST(ChoosePortfolio, OneVariantIsTheOneThatLosesLeastByWeight) {
  PortfolioTimes times = Decoding({100, 200}, {{10, 12, 20}, {40, 24, 20}});
  EXPECT_THAT(ChoosePortfolio(times, 1).variants, ElementsAre(1)) << "20 % twice against 100 % once";
  times.weights = {8, 1};
  EXPECT_THAT(ChoosePortfolio(times, 1).variants, ElementsAre(0));
  times.weights = {1, 8};
  const Portfolio portfolio = ChoosePortfolio(times, 1);
  EXPECT_THAT(portfolio.variants, ElementsAre(2));
  EXPECT_THAT(portfolio.mean_loss, ElementsAre(DoubleNear(1.0 / 9, 1e-9)));
  EXPECT_THAT(portfolio.worst_loss, ElementsAre(DoubleNear(1, 1e-9)));
}

TEST(ChoosePortfolio, EachProblemTakesTheFastestOfThoseKept) {
  const Portfolio portfolio = ChoosePortfolio(Decoding({100, 200}, {{10, 12, 20}, {40, 24, 20}}), 2);
  EXPECT_THAT(portfolio.of_problem, ElementsAre(0, 2));
  EXPECT_THAT(portfolio.mean_loss.back(), DoubleNear(0, 1e-9));
}

TEST(ChoosePortfolio, KeepsNoMoreThanHelp) {
  EXPECT_THAT(ChoosePortfolio(Decoding({100, 200}, {{10, 12}, {20, 24}}), 4).variants, ElementsAre(0));
}

TEST(ChoosePortfolio, AnExchangeMendsWhatGreedyChoseFirst) {
  // Variant 0 is best alone; with two, 1 and 2 leave no loss.
  const Portfolio portfolio =
      ChoosePortfolio(Decoding({1, 2, 3, 4}, {{11, 10, 90}, {11, 10, 90}, {11, 90, 10}, {11, 90, 10}}), 2);
  EXPECT_THAT(portfolio.variants, ::testing::UnorderedElementsAre(1, 2));
}

TEST(ChoosePortfolio, ProblemsWithoutCodeComeBeforeSpeed) {
  const Portfolio portfolio = ChoosePortfolio(Decoding({1, 2, 3}, {{10, 90}, {10, 90}, {0, 90}}), 1);
  EXPECT_THAT(portfolio.variants, ElementsAre(1));
  const Portfolio none = ChoosePortfolio(Decoding({1, 2}, {{10}, {0}}), 1);
  EXPECT_THAT(none.of_problem, ElementsAre(0, Portfolio::kNone));
}

TEST(DispatchByLength, ALengthBelongsToTheNearestByRatio) {
  const PortfolioTimes times = Decoding({1600, 100, 400}, {{90, 20}, {10, 20}, {10, 20}});
  const DispatchTable table = DispatchByLength(times, ChoosePortfolio(times, 2));
  EXPECT_EQ(table.axis, "kv");
  ASSERT_EQ(table.ranges.size(), 2u);
  EXPECT_EQ(table.ranges[0].first, 1);
  EXPECT_EQ(table.ranges[0].last, 800) << "100 and 400 are one range";
  EXPECT_EQ(table.ranges[0].variant, 0u);
  EXPECT_EQ(table.ranges[1].first, 801);
  EXPECT_EQ(table.ranges[1].last, 0);
}

TEST(DispatchByLength, NamesTheLengthThatDiffers) {
  PortfolioTimes times = Decoding({1, 2}, {{10, 20}, {20, 10}});
  const Portfolio portfolio = ChoosePortfolio(times, 2);
  const auto axis_of = [&](const char* a, const char* b) {
    times.problems = {*ParseProblem(a), *ParseProblem(b)};
    return DispatchByLength(times, portfolio).axis;
  };
  EXPECT_EQ(axis_of("b1.h8.q64.d64.f16", "b1.h8.q128.d64.f16"), "q and kv");
  EXPECT_EQ(axis_of("b1.h8.q64.kv999.d64.f16", "b1.h8.q128.kv999.d64.f16"), "q");
  EXPECT_EQ(axis_of("b1.h8.q64.d64.f16", "b3.h8.q64.d64.f16"), "batch");
  EXPECT_EQ(axis_of("b1.h8.q64.d64.f16", "b3.h8.q128.d64.f16"), "");
  EXPECT_EQ(axis_of("b1.h8.q64.d64.f16", "b1.h4.q128.d64.f16"), "");
}

// `attune portfolio` against a server with these trials.
class PortfolioCommandTest : public CliTest {
 protected:
  static v1::Trial TrialOf(const std::string& text, const std::string& variant, double us) {
    v1::Trial trial;
    trial.set_problem_text(text);
    trial.set_verdict(us > 0 ? v1::VERDICT_OK : v1::VERDICT_WRONG_RESULT);
    trial.mutable_variant()->set_text(variant);
    trial.mutable_timing()->set_median_us(us);
    return trial;
  }

  const std::string longer = "b2.h8.q1024.d64.f16";
};

TEST_F(PortfolioCommandTest, ShowsWhatIsKeptAndWhatEachLengthTakes) {
  fake.HasTrials({TrialOf(problem, "f:A=1", 10), TrialOf(problem, "f:A=2", 12), TrialOf(longer, "f:A=1", 30),
                  TrialOf(longer, "f:A=2", 20), TrialOf(longer, "f:A=3", 0),
                  TrialOf(longer, "f:A=1", 1)});  // an older time of the same variant
  EXPECT_EQ(Run({"portfolio", problem, longer + "=2", "--format=json"}), 0) << err;
  const Json json = JsonLines()[0];
  EXPECT_EQ(json["rows"][0]["variant"], "f:A=1");
  EXPECT_EQ(json["rows"][1]["variant"], "f:A=2");
  EXPECT_EQ(json["rows"][1]["weight"], 2);
  EXPECT_EQ(json["axis"], "q and kv");
  EXPECT_EQ(json["ranges"][0]["last"], 724);
  EXPECT_EQ(json["ranges"][1]["last"], Json());
  EXPECT_EQ(fake.last_list_trials().filter().device_id(), "cuda:0") << "times of one card";
  EXPECT_EQ(Run({"portfolio", problem, longer, "--variants", "1"}), 0);
  EXPECT_THAT(out, HasSubstr("f:A=2"));
  EXPECT_THAT(out, HasSubstr("20.0 %")) << "10 us to 12 us";
}

TEST_F(PortfolioCommandTest, HasTheTimesTakenThatAreMissing) {
  fake.HasTrials({TrialOf(problem, "f:A=1", 10), TrialOf(longer, attune::testing::FakeAttune::kVariant, 20)});
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"portfolio", problem, longer, "--tune", "--variants", "1"}), 3);
  const v1::TuneRequest request = fake.last_tune();
  EXPECT_EQ(ToText(*FromProto(request.problem())), problem) << "the other variant is not feasible for the longer one";
  ASSERT_EQ(request.required_size(), 1);
  EXPECT_EQ(request.required(0).text(), attune::testing::FakeAttune::kVariant);
  EXPECT_EQ(request.strategy().max_trials(), 1);
  EXPECT_THAT(err, HasSubstr("1 problem without a time of any of these variants"));
}

TEST_F(PortfolioCommandTest, RefusesWhatItCannotUse) {
  EXPECT_EQ(Run({"portfolio", problem + "=0"}), 2);
  EXPECT_THAT(err, HasSubstr(absl::StrCat("the weight of ", problem, " is '0'; allowed: numbers above 0")));
  piped = "# lengths\nb1.h8\n";
  EXPECT_EQ(Run({"portfolio", "-"}), 2);
  EXPECT_THAT(err, HasSubstr("standard input, line 2: "));
  fake.HasTrials({});
  EXPECT_EQ(Run({"portfolio", problem}), 3);
  EXPECT_THAT(err, HasSubstr("none of these problems has a trial that is OK on cuda:0"));
  EXPECT_EQ(Run({"portfolio", problem, "--variants", "0"}), 2);
}

}  // namespace
}  // namespace attune::cli
