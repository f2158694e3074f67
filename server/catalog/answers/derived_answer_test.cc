#include "server/catalog/answers/derived_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/catalog/answers/problem_distance.h"
#include "server/catalog/testing/results_fixture.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;

using DerivedAnswerTest = ResultsTest;

TEST(Distance, CountsOctavesOfWorkAndLengths) {
  const Problem a = *ParseProblem("b2.h8.q512.d64.f16");
  EXPECT_EQ(Distance(a, a), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b4.h4.q512.d64.f16")), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h16.q1024.kv512.d64.f16")), 2);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.kvh2.q512.d64.f16")), 2);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d128.f16")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.bf16")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.causal")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.bshd")), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.sinks")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.softcap30")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.lse")), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.page16")), std::nullopt);
  const Problem paged = *ParseProblem("b2.h8.q512.d64.f16.varlen.page16");
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q1024.d64.f16.varlen.page16")), 2);
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q512.d64.f16.varlen")), std::nullopt);
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q512.d64.f16.bshd.page16")), std::nullopt) << "one is varlen";
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q512.d64.f16.varlen.page32")), std::nullopt);
}

TEST_F(DerivedAnswerTest, TheFamilyOfHighestPrecedenceIsGuessed) {
  auto families = Families(SearchFamily());
  families.push_back(MakeFamily(R"(
    name: "zz_fast" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    guess_precedence: 1
    launches { entry: "attention" grid_x: "1" block_x: "128" main: true })",
                                "fast"));
  const auto guess = HeuristicVariant(families, *ParseProblem(kProblem), FakeDevice());
  ASSERT_TRUE(guess.ok());
  EXPECT_EQ(guess->family->name(), "zz_fast");
}

// The family of these tests with one more constraint.
std::vector<std::shared_ptr<const space::Family>> FamiliesWith(const std::string& constraint) {
  auto family = std::make_shared<space::Family>();
  family->manifest = SearchFamily()->manifest;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(constraint, family->manifest.add_constraints()));
  family->sources = SearchFamily()->sources;
  family->source_hash = SearchFamily()->source_hash;
  return Families(family);
}

TEST_F(DerivedAnswerTest, TheNearestIsLaunchedAsThisShapeIsAdvisedToBe) {
  TuneOne();
  Host host = Today();
  host.families =
      FamiliesWith(R"(expr: "SPLITS == 1 || seq_q > 100" reason: "short sequences gain nothing" advice: true)");
  const auto best = Open(host)->GetBest(Ask("b1.h1.q64.d64.f16"));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=1");
  EXPECT_EQ(best->provenance_detail(), absl::StrCat("from ", kProblem, "; for this shape SPLITS 2 to 1"));
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 2);
  EXPECT_FALSE(best->artifact_sha256().empty()) << "the code is the same";
  EXPECT_DOUBLE_EQ(best->predicted().us(), best->timing().median_us())
      << "a quarter of the work in a quarter of the CTAs";
  EXPECT_FALSE(Open(Today())->GetBest(Ask(kProblem))->has_predicted());
}

TEST_F(DerivedAnswerTest, NearProblemsOfferWhatTheyAreServedNearestFirstAndEachOnce) {
  SetTimes({{"32/8", 40}, {"64/16", 40}, {"16/4", 40}});
  Start();
  Tune();
  Tune(TuneRequest("b1.h1.q512.d64.f16"));
  Tune(TuneRequest("b1.h1.q64.d64.f16"));
  const auto nearby = [this](const Host& host, size_t most) {
    std::vector<std::string> texts;
    const auto results = Open(host);
    for (const space::Variant& variant :
         results->Nearby(*ParseProblem("b1.h1.q400.d64.f16"), host.devices[0], v1::POLICY_HOT, most)) {
      texts.push_back(variant.ToText());
    }
    return texts;
  };
  EXPECT_THAT(nearby(Today(), 9),
              ::testing::ElementsAre("tiles:BLOCK=64,SPLITS=2", "tiles:BLOCK=32,SPLITS=2", "tiles:BLOCK=16,SPLITS=1"));
  EXPECT_THAT(nearby(Today(), 1), ::testing::ElementsAre("tiles:BLOCK=64,SPLITS=2"));
  // Re-fitted, the two nearest may be the same.
  Host host = Today();
  host.families = FamiliesWith(R"(expr: "SPLITS == 1 && BLOCK < 64" reason: "short" advice: true)");
  const std::vector<std::string> advised = nearby(host, 9);
  EXPECT_EQ(std::set<std::string>(advised.begin(), advised.end()).size(), advised.size());
  EXPECT_THAT(advised, ::testing::Contains("tiles:BLOCK=32,SPLITS=1"));
}

TEST_F(DerivedAnswerTest, AdviceUnseatsNobody) {
  TuneOne();
  Host host = Today();
  host.families = FamiliesWith(R"(expr: "BLOCK != 32" reason: "another device's" advice: true)");
  const auto results = Open(host);
  EXPECT_EQ(results->GetBest(Ask(kProblem))->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  const auto near = results->GetBest(Ask("b1.h1.q64.d64.f16"));
  EXPECT_EQ(near->provenance(), v1::PROVENANCE_NEAREST) << "where nobody is advised, the nearest";
  EXPECT_EQ(near->variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(DerivedAnswerTest, AdviceIsWorthAnOctaveOfDistance) {
  SetTimes({{"32/4", 40}});
  Start();
  Tune();
  SetTimes({{"16/16", 40}});
  Tune(TuneRequest("b1.h1.q256.d64.f16"));
  Host host = Today();
  host.families = FamiliesWith(R"(expr: "BLOCK != 32" reason: "another device's" advice: true)");
  const auto results = Open(host);
  EXPECT_THAT(results->GetBest(Ask("b1.h1.q160.d64.f16"))->provenance_detail(), HasSubstr("from b1.h1.q256.d64.f16"));
  EXPECT_THAT(results->GetBest(Ask("b1.h1.q64.d64.f16"))->provenance_detail(),
              ::testing::StartsWith(absl::StrCat("from ", kProblem)))
      << "the other is two octaves farther";
}

// kProblem has one head and 128 rows and keys.
TEST_F(DerivedAnswerTest, BeyondSixOctavesTheFamilysGuessIsTheAnswer) {
  TuneOne();
  const auto results = Open(Today());
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q1024.d64.f16"))->provenance(), v1::PROVENANCE_NEAREST) << "6 octaves";
  EXPECT_EQ(results->GetBest(Ask("b2.h1.q1024.d64.f16"))->provenance(), v1::PROVENANCE_HEURISTIC) << "7";
}

TEST_F(DerivedAnswerTest, FromThreeOctavesOnAGuessOfAnotherFamilyIsTheAnswer) {
  TuneOne();
  Host host = Today();
  host.families.Add(MakeFamily(R"(
    name: "zz_fast" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    guess_precedence: 1
    launches { entry: "attention" grid_x: "1" block_x: "128" main: true })",
                               "fast"));
  const auto results = Open(host);
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q256.kv500.d64.f16"))->provenance(), v1::PROVENANCE_NEAREST) << "2.97";
  const auto far = results->GetBest(Ask("b2.h1.q256.d64.f16"));
  EXPECT_EQ(far->provenance(), v1::PROVENANCE_HEURISTIC) << "3";
  EXPECT_EQ(far->variant().family(), "zz_fast");
}

TEST_F(DerivedAnswerTest, AProblemThatDiffersInLseAloneIsNearest) {
  TuneOne();
  const auto best = Open(Today())->GetBest(Ask(std::string(kProblem) + ".lse"));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_FALSE(best->artifact_sha256().empty());
}

}  // namespace
}  // namespace attune::catalog
