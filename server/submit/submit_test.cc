// A submission's whole way through the tuner, over fakes.
#include <future>
#include <mutex>

#include "absl/strings/match.h"
#include "server/submit/limits.h"
#include "server/submit/testing/submit_fixture.h"

namespace attune::submit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(SubmitTest, KeepsAFasterKernelAndServesItToNobody) {
  const std::string served = Served();
  const uint64_t before = results_->version();
  const v1::SubmitResult result = Submit(RequestOf(50));
  EXPECT_EQ(result.decision(), kKeep) << result.reason();
  ASSERT_EQ(result.rows_size(), 1);
  EXPECT_DOUBLE_EQ(result.rows(0).speedup(), 2);
  EXPECT_EQ(result.rows(0).base(), "incumbents/1");
  EXPECT_EQ(result.rows(0).base_trial().variant().text(), served);
  EXPECT_EQ(Served(), served);
  EXPECT_EQ(results_->version(), before) << "no answer has changed";
  EXPECT_FALSE(result.rows(0).trial().has_recipe());
}

// What nobody has adopted takes part in no tuning.
TEST_F(SubmitTest, IsNoChallengerOfTheIncumbent) {
  const std::string served = Served();
  Submit(RequestOf(50));
  v1::TuneRequest again = TuneRequest();
  again.set_retry_known(true);
  EXPECT_FALSE(Tune(again).tune().promoted());
  EXPECT_EQ(Served(), served);
}

TEST_F(SubmitTest, RevertsASlowerOneAndOneThatGainsNothing) {
  const v1::SubmitResult slower = Submit(RequestOf(150));
  EXPECT_EQ(slower.decision(), kRevert);
  EXPECT_THAT(slower.reason(), HasSubstr("50.0 % slower than the base"));
  ASSERT_FALSE(slower.rows(0).gates().empty());
  EXPECT_EQ(slower.rows(0).gates(0).gate(), v1::GateFinding::GATE_REGRESSION);
  EXPECT_THAT(Submit(RequestOf(100)).reason(), HasSubstr("no gain"));
}

TEST_F(SubmitTest, IsKeptWithItsFilesAndItsAnswer) {
  const v1::SubmitResult result = Submit(RequestOf(50));
  const absl::StatusOr<v1::Submission> submission = store_.GetSubmission(result.submission());
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->principal(), "token:ada");
  EXPECT_EQ(submission->iteration(), 1);
  EXPECT_EQ(submission->hypothesis(), "fewer barriers");
  EXPECT_THAT(submission->problems(), ElementsAre(kProblem));
  EXPECT_EQ(submission->state(), v1::Submission::STATE_PRIVATE);
  ASSERT_EQ(submission->files_size(), 1);
  EXPECT_EQ(submission->files(0).text(), RequestOf(50).files(0).text());
  EXPECT_EQ(submission->result().decision(), kKeep);
  EXPECT_EQ(submission->result().rows(0).trial().variant().family(), submission->family());
}

TEST_F(SubmitTest, RevertsWhatDoesNotCompileWithTheLine) {
  pool_.Script([](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    if (!supervisor::FakeCompilePool::Has(request, "-DTAKES=50")) return supervisor::FakeCompilePool::Plain(request);
    worker::v1::CompileResponse response;
    response.set_verdict(v1::VERDICT_COMPILE_ERROR);
    response.set_log("mine.cu(12): error: identifier \"x\" is undefined\n1 error detected\n");
    return response;
  });
  const v1::SubmitResult result = Submit(RequestOf(50));
  EXPECT_EQ(result.decision(), kRevert);
  EXPECT_EQ(result.reason(), "COMPILE_ERROR: mine.cu:12: identifier \"x\" is undefined");
  ASSERT_EQ(result.rows(0).diagnostics_size(), 1);
  EXPECT_EQ(result.rows(0).diagnostics(0).path(), "mine.cu");
  EXPECT_EQ(result.rows(0).diagnostics(0).line(), 12);
}

TEST_F(SubmitTest, RevertsWhatIsWrongOnFreshDataAndRemembersThat) {
  device_.ScriptPlayOff(
      [this](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
        worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
        response.mutable_results(0)->set_verdict(v1::VERDICT_WRONG_RESULT);
        response.mutable_results(0)->set_detail("O[3]");
        return response;
      });
  const v1::SubmitResult result = Submit(RequestOf(50));
  EXPECT_EQ(result.decision(), kRevert);
  EXPECT_THAT(result.reason(), HasSubstr("WRONG_RESULT: second check, on fresh data: O[3]"));
  EXPECT_EQ(Verdicts()[v1::VERDICT_WRONG_RESULT], 1);
  device_.ScriptPlayOff(nullptr);
  EXPECT_THAT(Submit(RequestOf(50)).reason(), HasSubstr("WRONG_RESULT")) << "the verdict on the content is kept";
}

TEST_F(SubmitTest, RevertsWhatIsWrongOnceInManyRuns) {
  device_.ScriptManyRuns(
      [this](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
        EXPECT_EQ(request.candidates_size(), 1) << "the base is not tried again";
        worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
        response.mutable_results(0)->set_verdict(v1::VERDICT_WRONG_RESULT);
        response.mutable_results(0)->set_detail("run 61: O[3]");
        return response;
      });
  const v1::SubmitResult result = Submit(RequestOf(50));
  EXPECT_EQ(result.decision(), kRevert);
  EXPECT_THAT(result.reason(), HasSubstr("WRONG_RESULT: second check, on fresh data: run 61: O[3]"));
  EXPECT_EQ(Verdicts()[v1::VERDICT_WRONG_RESULT], 1);
}

TEST_F(SubmitTest, TellsWorkersItsOwnLimitsOfTime) {
  double trial = 0;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (absl::StrContains(request.candidate().artifact(), "-DTAKES=")) trial = request.most_seconds();
    return device_.Good(request.candidate());
  });
  double compile = 0;
  pool_.Script([&](const worker::v1::CompileRequest& request) {
    compile = request.most_seconds();
    return supervisor::FakeCompilePool::Plain(request);
  });
  Submit(RequestOf(50));
  EXPECT_EQ(trial, absl::ToDoubleSeconds(TimeLimits().trial));
  EXPECT_EQ(compile, absl::ToDoubleSeconds(TimeLimits().compile));
}

TEST_F(SubmitTest, IsComparedWithTheOneBeforeInItsLoop) {
  const std::string first = Submit(RequestOf(50, "", "previous")).submission();
  v1::SubmitResult result = Submit(RequestOf(60, "", "previous"));
  EXPECT_EQ(result.decision(), kRevert) << "faster than the incumbent, slower than what was kept";
  EXPECT_EQ(result.rows(0).base(), first);
  result = Submit(RequestOf(40, "", "previous"));
  EXPECT_EQ(result.decision(), kKeep);
  EXPECT_EQ(result.rows(0).base(), first) << "what was reverted is nobody's base";
  EXPECT_EQ(Submit(RequestOf(30, "", "previous")).rows(0).base(), result.submission());
  EXPECT_EQ(Submit(RequestOf(45, "", first)).decision(), kKeep);
  EXPECT_EQ(Submit(RequestOf(20, "", "previous"), "token:grace").rows(0).base(), "incumbents/1")
      << "another's loop of the same name is another";
}

TEST_F(SubmitTest, OfSeveralProblemsEachHasItsRow) {
  v1::SubmitRequest request = RequestOf(50);
  *request.add_problems() = ToProto(*ParseProblem("b1.h1.q64.d64.f16"));
  const v1::SubmitResult result = Submit(request);
  ASSERT_EQ(result.rows_size(), 2);
  EXPECT_EQ(result.rows(1).problem(), "b1.h1.q64.d64.f16");
  EXPECT_EQ(result.rows(1).base(), "") << "nothing is served for it";
  EXPECT_EQ(result.decision(), kKeep);
}

TEST_F(SubmitTest, SaysWhyNoVariantIsFeasible) {
  const v1::SubmitResult result =
      Submit(RequestOf(50, "problem_limits { expr: \"seq_q > 1000\" reason: \"long sequences only\" }"));
  EXPECT_EQ(result.decision(), kRevert);
  EXPECT_THAT(result.reason(), HasSubstr("INFEASIBLE: long sequences only"));
  const v1::SubmitResult constrained =
      Submit(RequestOf(50, "constraints { expr: \"sm_count > 1000\" reason: \"needs a larger card\" }"));
  EXPECT_THAT(constrained.reason(), HasSubstr("needs a larger card"));
}

TEST_F(SubmitTest, TriesAFewOfManyVariants) {
  std::string values = "0";
  for (int i = 1; i < kMostValues; ++i) absl::StrAppend(&values, ", ", i);
  const v1::SubmitResult result = Submit(RequestOf(
      50, absl::StrCat("parameters { name: \"N\" values: [", values, "] binding: BINDING_COMPILE_TIME guess: 7 }")));
  EXPECT_EQ(result.rows(0).variants(), kMostValues);
  EXPECT_EQ(result.rows(0).variants_tried(), kMostTried);
}

// However good the others are: a bad one would be tried by whoever tunes with it.
TEST_F(SubmitTest, RevertsWhatHasABadVariantAndTriesNoMore) {
  int tried = 0;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    if (!absl::StrContains(request.candidate().artifact(), "-DTAKES=")) return response;
    ++tried;
    if (!absl::StrContains(request.candidate().artifact(), "-DN=7")) return response;
    response.set_verdict(v1::VERDICT_TIMEOUT);
    response.set_detail("no answer within 6s");
    response.clear_timing();
    return response;
  });
  const v1::SubmitResult result =
      Submit(RequestOf(50, "parameters { name: \"N\" values: [7, 8, 9] binding: BINDING_COMPILE_TIME guess: 7 }"));
  EXPECT_EQ(result.decision(), kRevert);
  EXPECT_EQ(result.reason(), "TIMEOUT: no answer within 6s");
  EXPECT_EQ(result.rows(0).trial().verdict(), v1::VERDICT_TIMEOUT);
  EXPECT_EQ(tried, 1);
}

TEST_F(SubmitTest, SaysThatItsBaseFailed) {
  device_.ScriptPlayOff(
      [this](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
        worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
        if (response.results_size() < 2) return response;
        response.mutable_results(1)->set_verdict(v1::VERDICT_WRONG_RESULT);
        response.mutable_results(1)->set_detail("O[3]\nand others");
        return response;
      });
  const v1::SubmitResult result = Submit(RequestOf(50));
  EXPECT_EQ(result.decision(), kKeep);
  EXPECT_THAT(result.reason(), HasSubstr("its base, incumbents/1, cannot be compared with: WRONG_RESULT: O[3]"));
  EXPECT_THAT(result.reason(), Not(HasSubstr("\n")));
  EXPECT_EQ(result.rows(0).base(), "incumbents/1");
  EXPECT_EQ(result.rows(0).base_trial().verdict(), v1::VERDICT_WRONG_RESULT);
}

// Each has a loop, and an iteration, of its own.
TEST_F(SubmitTest, TheSameOfTwoPrincipalsIsTwo) {
  std::promise<void> running;
  std::promise<void> go;
  std::once_flag once;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    std::call_once(once, [&] {
      running.set_value();
      go.get_future().wait();
    });
    return device_.Good(request.candidate());
  });
  const auto ada = tuner_->Submit(RequestOf(50), {.principal = "token:ada"});
  running.get_future().wait();
  const auto grace = tuner_->Submit(RequestOf(50), {.principal = "token:grace"});
  const auto again = tuner_->Submit(RequestOf(50), {.principal = "token:ada"});
  go.set_value();
  ASSERT_TRUE(ada.ok() && grace.ok() && again.ok());
  EXPECT_NE(ada->name(), grace->name());
  EXPECT_EQ(ada->name(), again->name());
  EXPECT_EQ(store_.GetSubmission(Await(grace->name()).submit().submission())->principal(), "token:grace");
}

TEST_F(SubmitTest, IsRefusedForADeviceOfAnotherKind) {
  v1::SubmitRequest request = RequestOf(50);
  request.mutable_files(0)->set_path("mine.cl");
  const absl::Status status = tuner_->Submit(request, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("BACKEND_OPENCL"));
}

TEST_F(SubmitTest, ACancelledOneLeavesNothing) {
  std::promise<void> running;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (!absl::StrContains(request.candidate().artifact(), "-DTAKES=")) return device_.Good(request.candidate());
    std::promise<void> stopped;
    const std::stop_callback on_stop(device_.abort(), [&] { stopped.set_value(); });
    running.set_value();
    stopped.get_future().wait();
    return absl::CancelledError("cut short");
  });
  const absl::StatusOr<v1::Operation> started = tuner_->Submit(RequestOf(50), {.principal = "token:ada"});
  ASSERT_TRUE(started.ok()) << started.status();
  running.get_future().wait();
  ASSERT_TRUE(tuner_->Cancel(started->name()).ok());
  EXPECT_EQ(Await(started->name()).state(), v1::Operation::STATE_CANCELLED);
  const auto page = store_.ListSubmissions({}, 10, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->items, IsEmpty());
}

}  // namespace
}  // namespace attune::submit
