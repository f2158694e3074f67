#include "server/search/strategy.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace attune::search {
namespace {

std::vector<size_t> AskAll(Strategy& strategy) {
  std::vector<size_t> asked;
  while (const std::optional<size_t> index = strategy.Speculate()) asked.push_back(*index);
  return asked;
}

Field Of(size_t candidates, Likely likely = {}) {
  Field field;
  field.candidates = candidates;
  field.likely = std::move(likely);
  return field;
}

absl::Duration StandingStill() { return absl::ZeroDuration(); }

v1::Strategy Random(uint64_t seed, int64_t max_trials) {
  v1::Strategy description;
  description.set_kind(v1::Strategy::KIND_RANDOM);
  description.set_seed(seed);
  description.set_max_trials(max_trials);
  return description;
}

TEST(Strategy, ExhaustiveAsksForEveryCandidateInOrder) {
  const auto strategy = MakeStrategy(v1::Strategy(), Of(4), 1, StandingStill);
  EXPECT_EQ(strategy->Total(), 4);
  EXPECT_EQ(AskAll(*strategy), (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(Strategy, RandomAsksForEveryCandidateOnceWhenItsBudgetAllows) {
  const auto strategy = MakeStrategy(Random(7, 0), Of(100), 1, StandingStill);
  const std::vector<size_t> asked = AskAll(*strategy);
  EXPECT_EQ(asked.size(), 100);
  EXPECT_EQ(std::set<size_t>(asked.begin(), asked.end()).size(), 100);
  EXPECT_FALSE(std::is_sorted(asked.begin(), asked.end()));
}

TEST(Strategy, RandomDrawsTheSameForTheSameSeed) {
  EXPECT_EQ(AskAll(*MakeStrategy(Random(7, 10), Of(100), 1, StandingStill)),
            AskAll(*MakeStrategy(Random(7, 10), Of(100), 2, StandingStill)));
  EXPECT_NE(AskAll(*MakeStrategy(Random(7, 10), Of(100), 1, StandingStill)),
            AskAll(*MakeStrategy(Random(8, 10), Of(100), 1, StandingStill)));
}

TEST(Strategy, TheDefaultSeedStandsInForZero) {
  EXPECT_EQ(AskAll(*MakeStrategy(Random(0, 10), Of(100), 7, StandingStill)),
            AskAll(*MakeStrategy(Random(7, 10), Of(100), 1, StandingStill)));
}

TEST(Strategy, ABudgetOfTrialsEndsIt) {
  const auto strategy = MakeStrategy(Random(7, 10), Of(100), 1, StandingStill);
  EXPECT_EQ(strategy->Total(), 10);
  EXPECT_EQ(strategy->TimeLeft(), absl::InfiniteDuration());
  EXPECT_EQ(AskAll(*strategy).size(), 10);
  v1::Strategy exhaustive;
  exhaustive.set_max_trials(3);
  EXPECT_EQ(AskAll(*MakeStrategy(exhaustive, Of(100), 1, StandingStill)).size(), 3);
}

TEST(Strategy, ABudgetOfTimeCountsFromTheFirstTrial) {
  absl::Duration now = absl::Hours(7);
  v1::Strategy description;
  description.mutable_max_time()->set_seconds(10);
  const auto strategy = MakeStrategy(description, Of(100), 1, [&] { return now; });
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(strategy->Speculate(), i);
  now += absl::Seconds(60);  // compiling, waiting for the device
  EXPECT_EQ(strategy->TimeLeft(), absl::Seconds(10));
  EXPECT_EQ(strategy->Choose({0, 1, 2}).what, Choice::What::kTry);
  now += absl::Seconds(9);
  EXPECT_EQ(strategy->TimeLeft(), absl::Seconds(1));
  EXPECT_EQ(strategy->Choose({1, 2}).what, Choice::What::kTry);
  EXPECT_TRUE(strategy->Speculate().has_value());
  now += absl::Seconds(1);
  EXPECT_EQ(strategy->Choose({2}).what, Choice::What::kDone);
  EXPECT_FALSE(strategy->Speculate().has_value());
  EXPECT_TRUE(strategy->Done());
}

TEST(Strategy, TriesWhatIsReadyInTheOrderInWhichItCame) {
  const auto strategy = MakeStrategy(v1::Strategy(), Of(3), 1, StandingStill);
  AskAll(*strategy);
  EXPECT_EQ(strategy->Choose({2, 0}).candidate, 2);
  EXPECT_EQ(strategy->Choose({0}).candidate, 0);
}

TEST(Strategy, NothingReadyIsNotTheEnd) {
  const auto strategy = MakeStrategy(v1::Strategy(), Of(2), 1, StandingStill);
  EXPECT_EQ(strategy->Choose({}).what, Choice::What::kWait);
  EXPECT_EQ(AskAll(*strategy).size(), 2);
  EXPECT_TRUE(strategy->Done());  // nothing more is compiled
  EXPECT_EQ(strategy->Choose({}).what, Choice::What::kWait);
  strategy->Tell(0, v1::Trial());
  strategy->Tell(1, v1::Trial());
  EXPECT_EQ(strategy->Choose({}).what, Choice::What::kDone);
}

TEST(Strategy, ABudgetCompilesNoMoreThanItMayTry) {
  v1::Strategy description;
  description.set_max_trials(2);
  const auto strategy = MakeStrategy(description, Of(100), 1, StandingStill);
  EXPECT_EQ(AskAll(*strategy).size(), 2);
  strategy->Tell(0, v1::Trial());  // was known: it counts, as one that is tried
  EXPECT_EQ(strategy->Choose({1}).what, Choice::What::kTry);
  EXPECT_EQ(strategy->Choose({}).what, Choice::What::kDone);
  EXPECT_EQ(AskAll(*strategy).size(), 0);
}

TEST(Strategy, NothingToTryIsNoTrial) {
  EXPECT_FALSE(MakeStrategy(Random(7, 0), Of(0), 1, StandingStill)->Speculate().has_value());
}

TEST(Strategy, RandomBeginsWithWhatIsGuessed) {
  const std::vector<size_t> asked =
      AskAll(*MakeStrategy(Random(7, 0), Of(100, {.priors = {}, .guesses = {40, 0, 41}}), 1, StandingStill));
  EXPECT_EQ(std::vector<size_t>(asked.begin(), asked.begin() + 3), (std::vector<size_t>{40, 0, 41}));
  EXPECT_EQ(std::set<size_t>(asked.begin(), asked.end()).size(), 100);
}

// 95 candidates of one family, 5 of another.
TEST(Strategy, RandomDrawsFromFamiliesInTurn) {
  Likely likely;
  likely.families.assign(100, 0);
  for (const size_t few : {3, 20, 21, 50, 99}) likely.families[few] = 1;
  const std::vector<size_t> asked = AskAll(*MakeStrategy(Random(7, 0), Of(100, likely), 1, StandingStill));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(likely.families[asked[i]], i % 2) << i;
  EXPECT_EQ(std::set<size_t>(asked.begin(), asked.end()).size(), 100);
}

TEST(Strategy, BothBeginWithPriorsAndAskForEachOnce) {
  const Likely likely{.priors = {50, 3}, .guesses = {3, 7}};
  const std::vector<size_t> random = AskAll(*MakeStrategy(Random(7, 0), Of(100, likely), 1, StandingStill));
  EXPECT_EQ(std::vector<size_t>(random.begin(), random.begin() + 3), (std::vector<size_t>{50, 3, 7}));
  EXPECT_EQ(random.size(), 100);
  EXPECT_EQ(std::set<size_t>(random.begin(), random.end()).size(), 100);
  EXPECT_EQ(AskAll(*MakeStrategy(v1::Strategy(), Of(5, {.priors = {4, 2}, .guesses = {3}}), 1, StandingStill)),
            (std::vector<size_t>{4, 2, 0, 1, 3}));
}

TEST(Strategy, PriorsCostTheBudget) {
  EXPECT_EQ(
      AskAll(*MakeStrategy(Random(7, 10), Of(100, {.priors = {1, 2, 3}, .guesses = {}}), 1, StandingStill)).size(), 10);
}

TEST(Strategy, TheIncumbentComesFirstAndCostsTheBudget) {
  const Likely likely{.incumbent = 60, .priors = {50, 60}, .guesses = {}};
  const std::vector<size_t> random = AskAll(*MakeStrategy(Random(7, 4), Of(100, likely), 1, StandingStill));
  EXPECT_EQ(std::set<size_t>(random.begin(), random.end()).size(), 4);
  EXPECT_EQ(std::vector<size_t>(random.begin(), random.begin() + 2), (std::vector<size_t>{60, 50}));
  v1::Strategy exhaustive;
  exhaustive.set_max_trials(3);
  EXPECT_EQ(AskAll(*MakeStrategy(exhaustive, Of(100, likely), 1, StandingStill)), (std::vector<size_t>{60, 50, 0}));
}

TEST(Strategy, RandomDrawsTheSameWhateverItBeginsWith) {
  const std::vector<size_t> plain = AskAll(*MakeStrategy(Random(7, 20), Of(100), 1, StandingStill));
  const std::vector<size_t> with =
      AskAll(*MakeStrategy(Random(7, 20), Of(100, {.priors = {1, 2, 3}, .guesses = {}}), 1, StandingStill));
  const std::set<size_t> drawn(plain.begin(), plain.end());
  for (size_t i = 3; i < with.size(); ++i) EXPECT_TRUE(drawn.contains(with[i])) << with[i];
}

}  // namespace
}  // namespace attune::search
