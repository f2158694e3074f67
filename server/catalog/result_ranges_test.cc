#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/attune/domain.h"
#include "server/base/reason.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/results_fixture.h"

namespace attune::catalog {
namespace {

class ResultRanges : public ResultsTest {
 protected:
  static v1::GetBestRequest AskRanges(const std::string& problem) {
    v1::GetBestRequest request = Ask(problem);
    request.set_include_domains(true);
    return request;
  }
  static std::string RangesOf(Results& results, const v1::GetBestRequest& request) {
    const auto best = results.GetBest(request);
    if (best.ok()) return RangesText(best->domains());
    return std::string(best.status().GetPayload(kHoldsForUrl).value_or(absl::Cord("no payload")));
  }
};

TEST_F(ResultRanges, AreGivenToThoseWhoAsk) {
  TuneOne();
  const auto results = Open(Today());
  EXPECT_EQ(results->GetBest(Ask(kProblem))->domains_size(), 0);
  EXPECT_EQ(RangesOf(*results, AskRanges(kProblem)), "q=kv 128..255");
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q100.d64.f16")), "q=kv 64..127");
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q200.d64.f16")), "q=kv 129..255") << "128 has an answer of its own";
}

TEST_F(ResultRanges, WhatHasTheAnswersProblemAloneHasNone) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest exact = AskRanges(kProblem);
  exact.add_acceptable(v1::PROVENANCE_EXACT);
  EXPECT_EQ(RangesOf(*results, exact), "") << "the others' answers are not acceptable";
}

TEST_F(ResultRanges, AnswersInThemAreWhatTheyComeTo) {
  TuneOne();
  const auto results = Open(Today());
  const auto best = results->GetBest(AskRanges(kProblem));
  ASSERT_TRUE(best.ok());
  for (const v1::Domain& domain : best->domains()) {
    for (int64_t length = domain.low(); length <= domain.high(); ++length) {
      const auto there = results->GetBest(Ask(absl::StrCat("b1.h1.q", length, ".d64.f16")));
      EXPECT_EQ(there->variant().text(), best->variant().text());
      EXPECT_EQ(there->artifact_sha256(), best->artifact_sha256());
      EXPECT_EQ(there->recipe().SerializeAsString(), RecipeAt(best->recipe(), domain, length)->SerializeAsString());
    }
  }
}

TEST_F(ResultRanges, AMissHasThemToo) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest tuned = AskRanges("b1.h1.q100.d128.f16");
  tuned.add_acceptable(v1::PROVENANCE_NEAREST);
  EXPECT_EQ(RangesOf(*results, tuned), "q=kv 64..127");
  tuned.set_include_domains(false);
  EXPECT_EQ(RangesOf(*results, tuned), "no payload");
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q100.d128.f16")), "q=kv 64..127") << "HEURISTIC";
}

TEST_F(ResultRanges, AnotherIncumbentChangesThem) {
  TuneOne();
  const auto results = Open(Today());
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q200.d64.f16")), "q=kv 129..255");
  v1::Trial trial = store_.trials().front();
  trial.set_problem_text("b1.h1.q180.d64.f16");
  *trial.mutable_problem() = ToProto(*ParseProblem(trial.problem_text()));
  v1::Incumbent next;
  next.set_problem_text(trial.problem_text());
  *next.mutable_problem() = trial.problem();
  next.set_policy(v1::POLICY_HOT);
  next.mutable_trial()->set_name(*store_.AppendTrial(trial, {}));
  const auto promoted = results->Promote(next, std::nullopt, {});
  ASSERT_TRUE(promoted.ok()) << promoted.status();
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q200.d64.f16")), "q=kv 181..255");
}

}  // namespace
}  // namespace attune::catalog
