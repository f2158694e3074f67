// Strategies that learn, on a space of two families small enough to see through.
#include "server/search/guided_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "server/base/thinned.h"
#include "server/catalog/prior/tuned_problem.h"
#include "server/search/beginning.h"
#include "server/search/confidence.h"
#include "server/search/evolution_strategy.h"

namespace attune::search {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsSubsetOf;
using ::testing::Lt;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Family 0: 6 x 6 x 6 values; family 1: 10 values, of a parameter that the other has not.
Field TwoFamilies() {
  Field field;
  field.features = {"A", "B", "C", "D"};
  for (int64_t a = 0; a < 6; ++a) {
    for (int64_t b = 0; b < 6; ++b) {
      for (int64_t c = 0; c < 6; ++c) {
        field.points.push_back(
            {0, {a, b, c}, {static_cast<double>(a), static_cast<double>(b), static_cast<double>(c), kMissing}});
      }
    }
  }
  for (int64_t d = 0; d < 10; ++d) {
    field.points.push_back({1, {d}, {kMissing, kMissing, kMissing, static_cast<double>(d)}});
  }
  field.candidates = field.points.size();
  for (const Point& point : field.points) field.likely.families.push_back(point.family);
  return field;
}

// Fastest at A=4, B=1, C=3: 10 us. Family 1 takes 80 us.
Outcome Bowl(const Point& point) {
  if (point.family == 1) return Outcome::Timed(80);
  const auto off = [&](size_t i, int64_t at) { return std::abs(static_cast<double>(point.values[i] - at)); };
  return Outcome::Timed(10 * std::exp(0.2 * (off(0, 4) + off(1, 1) + off(2, 3))));
}

v1::Trial TrialOf(const Outcome& outcome) {
  v1::Trial trial;
  trial.set_verdict(outcome.ok ? v1::VERDICT_OK : v1::VERDICT_CRASHED);
  if (outcome.ok) trial.mutable_timing()->set_median_us(outcome.us);
  return trial;
}

// Every code is ready at once.
std::vector<size_t> Search(Strategy& strategy, const Field& field, const std::function<Outcome(const Point&)>& outcome,
                           size_t most) {
  std::vector<size_t> tried;
  std::set<size_t> ready;
  while (tried.size() < most) {
    while (const Strategy::Thought thought = strategy.Think()) thought()();
    for (size_t dropped : strategy.Drop()) ready.erase(dropped);
    while (const std::optional<size_t> next = strategy.Speculate()) ready.insert(*next);
    const Choice choice = strategy.Choose({ready.begin(), ready.end()});
    if (choice.what != Choice::What::kTry) break;
    ready.erase(choice.candidate);
    tried.push_back(choice.candidate);
    strategy.Tell(choice.candidate, TrialOf(outcome(field.points[choice.candidate])));
  }
  return tried;
}

double BestOf(const std::vector<size_t>& tried, const Field& field,
              const std::function<Outcome(const Point&)>& outcome) {
  double best = 1e9;
  for (size_t candidate : tried) {
    const Outcome one = outcome(field.points[candidate]);
    if (one.ok) best = std::min(best, one.us);
  }
  return best;
}

TEST(GuidedStrategy, FindsTheBottomOfABowlInATenthOfTheSpace) {
  const Field field = TwoFamilies();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    GuidedStrategy strategy(field, {.seed = seed});
    EXPECT_LT(BestOf(Search(strategy, field, Bowl, 40), field, Bowl), 12.3) << seed;
  }
}

TEST(GuidedStrategy, BeginsWithWhatIsLikelyAndBothFamilies) {
  Field field = TwoFamilies();
  field.likely.incumbent = 7;
  field.likely.priors = {100};
  field.likely.guesses = {50, 220};
  GuidedStrategy strategy(field, {.seed = 1});
  const std::vector<size_t> tried = Search(strategy, field, Bowl, 8);
  EXPECT_THAT(std::vector<size_t>(tried.begin(), tried.begin() + 4), ElementsAre(7, 100, 50, 220));
  std::set<size_t> families;
  for (size_t i = 4; i < tried.size(); ++i) families.insert(field.points[tried[i]].family);
  EXPECT_THAT(families, UnorderedElementsAre(0, 1));
}

TEST(GuidedStrategy, LearnsWhatFails) {
  const Field field = TwoFamilies();
  // Fastest where it fails.
  const auto outcome = [](const Point& point) {
    return point.family == 0 && point.values[0] >= 3 ? Outcome::Failed() : Bowl(point);
  };
  GuidedStrategy strategy(field, {.seed = 1});
  const std::vector<size_t> tried = Search(strategy, field, outcome, 60);
  const auto failed =
      std::count_if(tried.begin(), tried.end(), [&](size_t candidate) { return !outcome(field.points[candidate]).ok; });
  EXPECT_LT(failed, 18);  // a random search: 29
  EXPECT_LT(BestOf(tried, field, outcome), 18.3);
}

TEST(GuidedStrategy, GoesOnWhereNothingIsGoodUntilNothingIsLeft) {
  const Field field = TwoFamilies();
  GuidedStrategy strategy(field, {.seed = 1});
  EXPECT_THAT(Search(
                  strategy, field, [](const Point&) { return Outcome::Failed(); }, 1000),
              SizeIs(field.candidates));
}

TEST(GuidedStrategy, SaysHowGoodItsBestIsAndEndsWhenThatIsEnough) {
  const Field field = TwoFamilies();
  GuidedStrategy strategy(field, {.seed = 1, .enough = 0.95});
  const std::vector<size_t> tried = Search(strategy, field, Bowl, 1000);
  EXPECT_LT(tried.size(), field.candidates);
  const auto claim = strategy.Claim();
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(claim->within(), 0.02);
  EXPECT_GE(claim->confidence(), 0.95);
  EXPECT_EQ(claim->tried(), static_cast<int64_t>(tried.size()));
  EXPECT_EQ(claim->of(), static_cast<int64_t>(field.candidates));
  EXPECT_NEAR(BestOf(tried, field, Bowl), 10, 0.2);
}

// What it plans after so many trials, the last of which had their code compiled for them, or had it at hand.
std::vector<size_t> PlannedAfter(size_t trials, const std::function<bool(size_t)>& is_compiled) {
  const Field field = TwoFamilies();
  GuidedStrategy strategy(field, {.seed = 1});
  std::vector<size_t> all(field.candidates);
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = 0; i < trials; ++i) {
    while (const Strategy::Thought thought = strategy.Think()) thought()();
    while (strategy.Speculate().has_value()) continue;
    const Choice choice = strategy.Choose(all);
    v1::Trial trial = TrialOf(Bowl(field.points[choice.candidate]));
    if (is_compiled(i)) trial.set_compile_ms(900);
    strategy.Tell(choice.candidate, trial);
  }
  std::vector<size_t> planned;
  while (const Strategy::Thought thought = strategy.Think()) thought()();
  while (const std::optional<size_t> next = strategy.Speculate()) planned.push_back(*next);
  return planned;
}

TEST(GuidedStrategy, PlansOneTrialWhereCodeIsAtHandAndSeveralWhereItIsCompiled) {
  const size_t begun = 8;  // what it begins with is one plan
  EXPECT_THAT(PlannedAfter(begun, [](size_t) { return false; }), SizeIs(1));
  EXPECT_THAT(PlannedAfter(begun, [](size_t) { return true; }), SizeIs(8));
  EXPECT_THAT(PlannedAfter(begun, [](size_t trial) { return trial == 0; }), SizeIs(8));
  EXPECT_THAT(PlannedAfter(begun + 1, [](size_t trial) { return trial == 0; }), SizeIs(0)) << "seven are still to come";
  EXPECT_THAT(PlannedAfter(begun + 8, [](size_t trial) { return trial == 0; }), SizeIs(1));
}

// The most codes and the most trials that are planned and not told at once, of a search whose candidates have one code
// each six; whoever is asked for first is compiled and told first, and the device waits in between.
std::pair<size_t, size_t> MostAtOnce(size_t compilers) {
  Field field = TwoFamilies();
  for (size_t i = 0; i < field.candidates; ++i) field.codes.push_back(i / 6);
  field.compilers = compilers;
  GuidedStrategy strategy(field, {.seed = 1});
  std::deque<size_t> planned;
  std::set<size_t> told;  // codes
  size_t most_codes = 0;
  size_t most_trials = 0;
  bool begun = false;  // with what it begins with it has no model to plan by
  for (int trial = 0; trial < 80; ++trial) {
    while (const Strategy::Thought thought = strategy.Think()) thought()();
    const size_t before = planned.size();
    while (const std::optional<size_t> next = strategy.Speculate()) planned.push_back(*next);
    begun = begun || (trial > 0 && planned.size() > before);
    std::set<size_t> codes;
    for (size_t candidate : planned) codes.insert(field.codes[candidate]);
    std::erase_if(codes, [&](size_t code) { return told.contains(code); });
    if (begun) most_codes = std::max(most_codes, codes.size());
    most_trials = std::max(most_trials, planned.size());
    const size_t candidate = planned.front();
    planned.pop_front();
    EXPECT_EQ(strategy.Choose({candidate}).candidate, candidate);
    v1::Trial ended = TrialOf(Bowl(field.points[candidate]));
    if (told.insert(field.codes[candidate]).second) ended.set_compile_ms(900);
    strategy.Tell(candidate, ended);
    strategy.Choose({});
  }
  return {most_codes, most_trials};
}

TEST(GuidedStrategy, HasACodeMoreThanCompilersUpToSixteenAndCountsNoTrialOfCodeThatIsThere) {
  for (const size_t compilers : {0, 15, 31}) {
    const auto [codes, trials] = MostAtOnce(compilers);
    EXPECT_EQ(codes, 16) << compilers;
    EXPECT_GT(trials, 16) << compilers;
  }
  EXPECT_EQ(MostAtOnce(3).first, 4);
}

TEST(GuidedStrategy, HasATwentiethOfTheSpaceOr96TrialsByDefault) {
  Field field = TwoFamilies();
  v1::Strategy description;
  description.set_kind(v1::Strategy::KIND_GUIDED);
  const auto total = [&] { return MakeStrategy(description, field, 1, [] { return absl::ZeroDuration(); })->Total(); };
  EXPECT_EQ(total(), 96);
  for (size_t i = 0; i < 2000; ++i) field.points.push_back(field.points.front());
  field.candidates = field.points.size();
  EXPECT_EQ(total(), 2226 / 20);
}

// Two cards, each with one trial in hand: whoever ends its own finds exactly one that is new, planned from all told.
TEST(GuidedStrategy, KeepsEachOfSeveralCardsBusyWithOneTrialAPlan) {
  Field field = TwoFamilies();
  field.cards = 2;
  GuidedStrategy strategy(field, {.seed = 1});
  std::vector<size_t> all(field.candidates);
  std::iota(all.begin(), all.end(), 0);
  const auto take = [&](int& planned) {
    planned = 0;
    while (const Strategy::Thought thought = strategy.Think()) thought()();
    while (strategy.Speculate().has_value()) ++planned;
    return strategy.Choose(all).candidate;
  };
  int planned = 0;
  std::deque<size_t> in_hand = {take(planned), take(planned)};
  for (int trial = 0; trial < 40; ++trial) {
    const size_t ended = in_hand.front();
    in_hand.pop_front();
    strategy.Tell(ended, TrialOf(Bowl(field.points[ended])));
    in_hand.push_back(take(planned));
    EXPECT_NE(in_hand.front(), in_hand.back()) << "after trial " << trial;
    EXPECT_TRUE(planned == 1 || trial < 8) << planned << " after trial " << trial;
  }
}

TEST(GuidedStrategy, EndsOnceItHasBeenSureForEightTrials) {
  const Field field = TwoFamilies();
  GuidedStrategy strategy(field, {.seed = 1, .enough = 0.95});
  std::vector<size_t> all;
  for (size_t i = 0; i < field.candidates; ++i) all.push_back(i);
  std::optional<int64_t> sure_since;
  while (true) {
    while (const Strategy::Thought thought = strategy.Think()) thought()();
    const auto claim = strategy.Claim();
    const bool sure = claim.has_value() && claim->confidence() >= 0.95;
    sure_since = sure ? std::optional(sure_since.value_or(claim->tried())) : std::nullopt;
    if (strategy.Done()) break;
    while (strategy.Speculate().has_value()) continue;
    const Choice choice = strategy.Choose(all);
    ASSERT_EQ(choice.what, Choice::What::kTry);
    strategy.Tell(choice.candidate, TrialOf(Bowl(field.points[choice.candidate])));
  }
  ASSERT_TRUE(sure_since.has_value());
  EXPECT_EQ(strategy.Claim()->tried() - *sure_since, 8);
}

TEST(GuidedStrategy, IsNotSureOfWhatWasLost) {
  Field field = TwoFamilies();
  const size_t fastest = 4 * 36 + 1 * 6 + 3;
  for (size_t i = 0; i < field.candidates; ++i) {
    if (i != fastest) field.known.emplace_back(i, Bowl(field.points[i]));
  }
  GuidedStrategy strategy(field, {.seed = 1});
  while (const Strategy::Thought thought = strategy.Think()) thought()();
  EXPECT_EQ(strategy.Speculate(), fastest);
  v1::Trial lost;
  lost.set_verdict(v1::VERDICT_LOST);
  strategy.Tell(fastest, lost);
  while (const Strategy::Thought thought = strategy.Think()) thought()();
  EXPECT_TRUE(strategy.Done());
  ASSERT_TRUE(strategy.Claim().has_value());
  EXPECT_LT(strategy.Claim()->confidence(), 0.9);
}

// That the best of so many trials, 10 us, is the best, where 200 are left of which 11 us are expected.
double SureAfter(size_t trials, double deviation) {
  std::vector<bool> untold(trials + 200, true);
  std::fill_n(untold.begin(), trials, false);
  Expectation slower;
  slower.mean = std::log(11);
  slower.deviation = deviation;
  return ConfidenceThatBest(10, untold, std::vector<Expectation>(untold.size(), slower));
}

TEST(Confidence, IsInWhatTheModelSaysOnlyAfterManyTrials) {
  EXPECT_LT(SureAfter(79, 0.01), 0.01);
  EXPECT_GT(SureAfter(80, 0.01), 0.9);
  EXPECT_LT(SureAfter(80, 0.05), 0.5) << "its trees disagree";
}

TEST(GuidedStrategy, SaysNothingBeforeItHasAModel) {
  const Field field = TwoFamilies();
  GuidedStrategy strategy(field, {.seed = 1});
  EXPECT_FALSE(strategy.Claim().has_value());
  Search(strategy, field, Bowl, 8);
  EXPECT_FALSE(strategy.Claim().has_value());
}

TEST(GuidedStrategy, EndsAtItsLimit) {
  const Field field = TwoFamilies();
  GuidedStrategy strategy(field, {.seed = 1, .limit = 20});
  EXPECT_THAT(Search(strategy, field, Bowl, 1000), SizeIs(20));
  EXPECT_EQ(strategy.Total(), 20);
  EXPECT_EQ(strategy.Claim()->tried(), 20) << "what it claims is from all of them";
}

// After a kill: 5 of its 20 are known, beside 2 of another job's.
TEST(GuidedStrategy, CountsOnceWhatItsJobHasTried) {
  Field field = TwoFamilies();
  for (size_t i = 0; i < 7; ++i) field.known.emplace_back(i, Bowl(field.points[i]));
  field.spent = 5;
  GuidedStrategy strategy(field, {.seed = 1, .limit = 20});
  EXPECT_EQ(strategy.Total(), 22);
}

// A near problem has the same optimum, at another scale.
TEST(GuidedStrategy, NearProblemsSayWhereToBegin) {
  Field field = TwoFamilies();
  Neighbour neighbour{1, {}};
  for (const Point& point : field.points) {
    neighbour.rows.push_back({point.family, point.features, Outcome::Timed(7 * Bowl(point).us)});
  }
  field.neighbours = {neighbour};
  GuidedStrategy strategy(field, {.seed = 1});
  EXPECT_LT(BestOf(Search(strategy, field, Bowl, 3), field, Bowl), 12.3);
}

// The near problem's best is the worst here.
TEST(GuidedStrategy, APriorThatMisleadsIsGivenUp) {
  Field field = TwoFamilies();
  Neighbour neighbour{1, {}};
  for (const Point& point : field.points) {
    neighbour.rows.push_back({point.family, point.features, Outcome::Timed(1e4 / Bowl(point).us)});
  }
  field.neighbours = {neighbour};
  GuidedStrategy strategy(field, {.seed = 1});
  EXPECT_LT(BestOf(Search(strategy, field, Bowl, 60), field, Bowl), 12.3);
}

TEST(EvolutionStrategy, FindsTheBottomOfABowl) {
  const Field field = TwoFamilies();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EvolutionStrategy strategy(field, seed);
    EXPECT_LT(BestOf(Search(strategy, field, Bowl, 64), field, Bowl), 12.3) << seed;
  }
}

TEST(EvolutionStrategy, CountsItsGenerations) {
  const Field field = TwoFamilies();
  EvolutionStrategy strategy(field, 1);
  EXPECT_EQ(strategy.Stage(), "");
  Search(strategy, field, Bowl, 33);
  EXPECT_EQ(strategy.Stage(), "generation 3");
}

TEST(EvolutionStrategy, TriesAllWhenItIsLetGoOn) {
  const Field field = TwoFamilies();
  EvolutionStrategy strategy(field, 1);
  const std::vector<size_t> tried = Search(strategy, field, Bowl, 1000);
  EXPECT_EQ(std::set<size_t>(tried.begin(), tried.end()).size(), field.candidates);
}

TEST(Exchange, NeighboursDifferInOneParameter) {
  const Field field = TwoFamilies();
  const Exchange exchange(field);
  EXPECT_THAT(exchange.Neighbours(0), SizeIs(15));
  for (size_t neighbour : exchange.Neighbours(43)) EXPECT_EQ(exchange.Distance(43, neighbour), 1);
  EXPECT_THAT(exchange.Neighbours(220), SizeIs(9));
  EXPECT_EQ(exchange.Find(0, {0, 0, 5}), 5);
  EXPECT_EQ(exchange.Find(0, {0, 0, 6}), std::nullopt);
  EXPECT_GT(exchange.Distance(0, 220), 3);
}

TEST(Beginning, TakesNothingThatIsNotOpen) {
  Field field = TwoFamilies();
  field.likely.guesses = {3, 4};
  std::vector<bool> open(field.candidates, false);
  open[4] = open[9] = true;
  RandomNumbers random(1);
  EXPECT_THAT(BeginWith(field, Exchange(field), SpaceModel(field, 1), open, 8, random),
              ::testing::AllOf(Contains(4), IsSubsetOf({4, 9})));
}

// How many of a neighbour's three fastest, this far away, are tried first. `poor`: a nearer one has too few trials to
// be learned from.
size_t FastestOfANeighbour(double distance, bool poor = false) {
  Field field = TwoFamilies();
  Neighbour neighbour{distance, {}};
  for (const Point& point : field.points) {
    const bool fast = point.family == 0 && point.values[0] == 0 && point.values[1] == 0 && point.values[2] < 3;
    neighbour.rows.push_back({point.family, point.features, Outcome::Timed(fast ? 1 : 10)});
  }
  if (poor) field.neighbours.push_back({1, {neighbour.rows.begin(), neighbour.rows.begin() + 19}});
  field.neighbours.push_back(neighbour);
  RandomNumbers random(1);
  const std::vector<size_t> begun =
      BeginWith(field, Exchange(field), SpaceModel(field, 1), std::vector<bool>(field.candidates, true), 3, random);
  return static_cast<size_t>(std::count_if(begun.begin(), begun.end(), [](size_t i) { return i < 3; }));
}

TEST(Beginning, TakesThreeThatANearProblemRanksFirstAndOneOfAFarOnes) {
  EXPECT_EQ(FastestOfANeighbour(2), 3);
  EXPECT_EQ(FastestOfANeighbour(3), 3);
  EXPECT_EQ(FastestOfANeighbour(5), 1);
  EXPECT_EQ(FastestOfANeighbour(5, /*poor=*/true), 1);
}

TEST(Beginning, IsShorterWhereSomethingIsLikely) {
  Field field = TwoFamilies();
  EXPECT_EQ(TrialsToBeginWith(field, SpaceModel(field, 1)), 8);
  field.likely.guesses = {3};
  EXPECT_EQ(TrialsToBeginWith(field, SpaceModel(field, 1)), 5);
  field.likely.guesses = {3, 50, 100, 150, 220};
  EXPECT_EQ(TrialsToBeginWith(field, SpaceModel(field, 1)), 7);  // and one of each family
  field.likely.guesses.clear();
  Neighbour neighbour{5, {}};
  for (size_t i = 0; i < 20; ++i) neighbour.rows.push_back({0, field.points[i].features, Outcome::Timed(5)});
  field.neighbours = {neighbour};
  EXPECT_EQ(TrialsToBeginWith(field, SpaceModel(field, 1)), 5);
}

TEST(SpaceModel, DoesNotLearnHowSlowTheSlowAre) {
  const Field field = TwoFamilies();
  const SpaceModel model(field, 1);
  const auto expected = [&](double slowest) {
    std::vector<Told> told;
    for (size_t i = 0; i < 30; ++i) told.emplace_back(i, Outcome::Timed(i % 3 == 0 ? slowest : 10 + 0.1 * i));
    return model.Expect(told, 1);
  };
  const std::vector<Expectation> slow = expected(100);
  const std::vector<Expectation> slower = expected(1000);
  for (size_t i = 0; i < field.candidates; ++i) EXPECT_EQ(slow[i].mean, slower[i].mean) << i;
  EXPECT_GT(slow[0].mean, std::log(13));
}

// One trial here, of what is fast there.
TEST(SpaceModel, AFarProblemSaysLess) {
  const auto slower = [](double distance) {
    Field field = TwoFamilies();
    Neighbour neighbour{distance, {}};
    for (const Point& point : field.points) {
      neighbour.rows.push_back({point.family, point.features, Outcome::Timed(point.values[0] == 0 ? 10 : 20)});
    }
    field.neighbours = {neighbour};
    const std::vector<Expectation> expected = SpaceModel(field, 1).Expect({{0, Outcome::Timed(10)}}, 1);
    return expected[200].mean - expected[0].mean;
  };
  EXPECT_NEAR(slower(1), std::log(2), 0.05);
  EXPECT_NEAR(slower(3), slower(1), 1e-9);
  EXPECT_NEAR(slower(6), slower(1) / 2, 1e-9);
}

// The near one has too few trials.
TEST(SpaceModel, APriorIsAsFarAsTheNearestProblemThatItWasLearnedFrom) {
  Field field = TwoFamilies();
  Neighbour poor{1, {}};
  for (size_t i = 0; i < 19; ++i) poor.rows.push_back({0, field.points[i].features, Outcome::Timed(5)});
  Neighbour rich{6, {}};
  for (const Point& point : field.points) {
    rich.rows.push_back({point.family, point.features, Outcome::Timed(point.values[0] == 0 ? 10 : 20)});
  }
  const auto slower = [&](const std::vector<Neighbour>& neighbours) {
    field.neighbours = neighbours;
    const SpaceModel model(field, 1);
    EXPECT_FALSE(model.is_prior_near());
    const std::vector<Expectation> expected = model.Expect({{0, Outcome::Timed(10)}}, 1);
    return expected[200].mean - expected[0].mean;
  };
  EXPECT_NEAR(slower({poor, rich}), std::log(2) / 2, 0.05);
  EXPECT_NEAR(slower({poor, rich}), slower({rich}), 1e-9);
}

TEST(SpaceModel, ANearProblemOfFewTrialsSaysNothing) {
  Field field = TwoFamilies();
  Neighbour neighbour{1, {}};
  for (size_t i = 0; i < 19; ++i) neighbour.rows.push_back({0, field.points[i].features, Outcome::Timed(5)});
  field.neighbours = {neighbour};
  EXPECT_FALSE(SpaceModel(field, 1).has_prior());
  neighbour.rows.push_back({0, field.points[19].features, Outcome::Timed(9)});
  field.neighbours = {neighbour};
  EXPECT_TRUE(SpaceModel(field, 1).has_prior());
}

// As many as of a problem that was shipped, so that both are believed alike.
TEST(SpaceModel, APriorIsLearnedFromTheFastestRowsOfAProblemAndSomeOfTheRest) {
  Field field = TwoFamilies();
  Neighbour whole{1, {}};
  for (int i = 0; i < 400; ++i) {
    const Point& point = field.points[static_cast<size_t>(i) % field.points.size()];
    whole.rows.push_back({point.family, point.features, Outcome::Timed(10 + 0.1 * i)});
  }
  Neighbour some{1, {}};
  for (size_t i : Thinned(whole.rows.size(), catalog::kMostLearned)) some.rows.push_back(whole.rows[i]);
  ASSERT_LE(some.rows.size(), catalog::kMostLearned);
  const auto excess = [&](const Neighbour& neighbour) {
    field.neighbours = {neighbour};
    return PriorOf(field, 1)->excess;
  };
  EXPECT_EQ(excess(whole), excess(some));
}

TEST(SpaceModel, WhatIsExpectedIsHalfOfThePriorOrAllOfIt) {
  Field field = TwoFamilies();
  for (size_t i = 0; i < field.candidates; ++i) field.expected.push_back(i == 7 ? -1 : 1);
  const std::optional<SpacePrior> alone = PriorOf(field, 1);
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->excess, field.expected);
  EXPECT_LE(alone->distance, kNear) << "is trusted";
  Neighbour neighbour{1, {}};
  for (const Point& point : field.points) neighbour.rows.push_back({point.family, point.features, Outcome::Timed(5)});
  field.neighbours = {neighbour};
  const std::optional<SpacePrior> both = PriorOf(field, 1);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->distance, 1);
  EXPECT_DOUBLE_EQ(both->excess[7], -0.5) << "near it all are as fast as the best";
  EXPECT_DOUBLE_EQ(both->excess[8], 0.5);
}

TEST(SpaceModel, LearnsOfManyTrialsFromTheFastestAndSomeOfTheRest) {
  std::vector<Told> told;
  for (size_t i = 0; i < 4000; ++i) told.emplace_back(i, i % 4 == 3 ? Outcome::Failed() : Outcome::Timed(5000.0 - i));
  const std::vector<Told> learned = LearnedFrom(told);
  EXPECT_GT(learned.size(), kMostTold * 3 / 4);
  EXPECT_LE(learned.size(), kMostTold);
  EXPECT_TRUE(
      std::is_sorted(learned.begin(), learned.end(), [](const Told& a, const Told& b) { return a.first < b.first; }));
  const auto has = [&](size_t i) {
    return std::any_of(learned.begin(), learned.end(), [i](const Told& one) { return one.first == i; });
  };
  for (size_t i = 3100; i < 4000; ++i) EXPECT_TRUE(has(i) || i % 4 == 3) << i;  // the fastest
  EXPECT_TRUE(std::any_of(learned.begin(), learned.end(), [](const Told& one) { return !one.second.ok; }));
  told.resize(kMostTold);
  EXPECT_EQ(LearnedFrom(told).size(), kMostTold);
}

TEST(SpaceModel, ExpectsWhatItWasToldAndIsUnsureElsewhere) {
  const Field field = TwoFamilies();
  const SpaceModel model(field, 1);
  std::vector<Told> told;
  for (size_t i = 0; i < 108; i += 3) told.emplace_back(i, Bowl(field.points[i]));
  const std::vector<Expectation> expected = model.Expect(told, 1);
  const auto fastest = std::min_element(told.begin(), told.end(),
                                        [](const Told& a, const Told& b) { return a.second.us < b.second.us; });
  EXPECT_NEAR(expected[fastest->first].mean, std::log(fastest->second.us), 0.01);
  EXPECT_GT(expected[fastest->first - 1].deviation, 2 * expected[fastest->first].deviation);
  for (const Expectation& one : expected) EXPECT_EQ(one.ok, 1);
}

}  // namespace
}  // namespace attune::search
