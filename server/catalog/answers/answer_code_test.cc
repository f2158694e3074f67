// Whether the code of what is served is there.
#include "server/catalog/answers/answer_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/base/sha256.h"
#include "server/catalog/testing/results_fixture.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;

using AnswerCodeTest = ResultsTest;

TEST_F(AnswerCodeTest, ALostArtifactIsSaidToBeGoneUntilItIsCompiledAgainWhateverItsBytes) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  const std::string lost = results->GetBest(request)->artifact_sha256();
  store_.LoseArtifact(lost);
  const absl::Status status = results->GetBest(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("tune ") + kProblem + " again"));

  pool_.Script([](const worker::v1::CompileRequest& request) {
    absl::StatusOr<worker::v1::CompileResponse> response = supervisor::FakeCompilePool::Plain(request);
    response->mutable_artifact()->append(" compiled again");
    return response;
  });
  Tune();
  const auto best = results->GetBest(request);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->artifact(), "code -DBLOCK=32 compiled again");
  EXPECT_EQ(best->artifact_sha256(), Sha256(best->artifact()));
  EXPECT_NE(best->artifact_sha256(), lost);
}

TEST_F(AnswerCodeTest, CodeOfOtherSourcesDoesNotStandInForALostArtifact) {
  TuneOne();
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  const std::string lost = Open(Today())->GetBest(request)->artifact_sha256();
  Host host = Today();
  host.families = Families(SearchFamily("source two"));
  pool_.Script([](const worker::v1::CompileRequest& request) {
    absl::StatusOr<worker::v1::CompileResponse> response = supervisor::FakeCompilePool::Plain(request);
    response->mutable_artifact()->append(" of source two");
    return response;
  });
  Start(host.families);
  Tune(TuneRequest("b1.h1.q512.d64.f16"));  // compiles the same variant
  store_.LoseArtifact(lost);
  EXPECT_EQ(Open(host)->GetBest(request).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(AnswerCodeTest, TheArtifactComesWhenAskedFor) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  EXPECT_EQ(results->GetBest(request)->artifact(), "code -DBLOCK=32");
  // The near problem's code is the same; the guess is in the cache from tuning.
  v1::GetBestRequest near = Ask("b1.h1.q160.d64.f16");
  near.set_include_artifact(true);
  EXPECT_EQ(results->GetBest(near)->artifact(), "code -DBLOCK=32");
  v1::GetBestRequest guess = Ask("b1.h1.q128.d128.f16");
  guess.set_include_artifact(true);
  EXPECT_EQ(results->GetBest(guess)->artifact(), "code -DBLOCK=32");
}

TEST_F(AnswerCodeTest, AGuessThatWasNeverCompiledHasNoArtifact) {
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  const auto best = Open(Today())->GetBest(request);
  ASSERT_TRUE(best.ok());
  EXPECT_TRUE(best->artifact().empty());
  EXPECT_TRUE(best->artifact_sha256().empty());
}

}  // namespace
}  // namespace attune::catalog
