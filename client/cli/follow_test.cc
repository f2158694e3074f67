// Commands that start an operation and follow it; Ctrl-C.
#include <signal.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/cli/testing/fake_world.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FollowTest : public CliTest {
 protected:
  void PressWhenWatching() {
    fake.HoldWatches([this] { interrupts->Press(); });
  }
};

TEST_F(FollowTest, TuneShowsItsWinnerAndWhy) {
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem, "--strategy", "random", "--max-trials", "9", "--max-time", "2m", "--family",
                 "attention_wmma"}),
            0);
  EXPECT_THAT(out, HasSubstr("promoted: there was no incumbent"));
  EXPECT_THAT(err, HasSubstr("operations/7 trials  1/2 trials"));
  const v1::TuneRequest request = fake.last_tune();
  EXPECT_EQ(request.strategy().kind(), v1::Strategy::KIND_RANDOM);
  EXPECT_EQ(request.strategy().max_trials(), 9);
  EXPECT_EQ(request.strategy().max_time().seconds(), 120);
  EXPECT_EQ(request.families(0), "attention_wmma");
  EXPECT_EQ(request.policy(), v1::POLICY_HOT);
}

TEST_F(FollowTest, TuneHasAnObjective) {
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_EQ(fake.last_tune().objective(), v1::OBJECTIVE_UNSPECIFIED);
  EXPECT_EQ(Run({"tune", problem, "--objective", "edp"}), 0);
  EXPECT_EQ(fake.last_tune().objective(), v1::OBJECTIVE_EDP);
}

TEST_F(FollowTest, AnEffortAloneSaysWhichStrategyKeepsIt) {
  fake.EndsWith(attune::testing::SucceededTuning());
  const auto asked = [this](const std::vector<std::string>& options) {
    std::vector<std::string> words = {"tune", problem};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(Run(words), 0);
    return fake.last_tune().strategy();
  };
  EXPECT_EQ(asked({}).kind(), v1::Strategy::KIND_GUIDED);
  EXPECT_EQ(asked({}).effort(), v1::Strategy::EFFORT_UNSPECIFIED);
  EXPECT_EQ(asked({"--effort", "quick"}).kind(), v1::Strategy::KIND_GUIDED);
  EXPECT_EQ(asked({"--effort", "quick"}).effort(), v1::Strategy::EFFORT_QUICK);
  EXPECT_EQ(asked({"--effort", "exhaustive"}).kind(), v1::Strategy::KIND_EXHAUSTIVE);
  EXPECT_EQ(asked({"--strategy", "guided", "--effort", "exhaustive"}).kind(), v1::Strategy::KIND_GUIDED);
  EXPECT_EQ(asked({"--strategy", "evolution"}).effort(), v1::Strategy::EFFORT_UNSPECIFIED);
  EXPECT_EQ(Run({"tune", problem, "--strategy", "random", "--effort", "full"}), 2);
  EXPECT_THAT(err, HasSubstr("--effort is full, with --strategy random; allowed: with guided and evolution"));
}

TEST_F(FollowTest, ConditionsAndRequiredVariantsAreSent) {
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem, "--where", "KV_SPLITS > 1", "--where", "WARPS == 4", "--fix", "BLOCK_M=64",
                 "--require", "tiles:BLOCK_M=16", "--seed-from", "b1.h2.kvh2.q8.d64.f16"}),
            0)
      << err;
  const v1::TuneRequest request = fake.last_tune();
  EXPECT_THAT(request.where(), ::testing::ElementsAre("KV_SPLITS > 1", "WARPS == 4", "BLOCK_M == 64"));
  EXPECT_EQ(request.required(0).text(), "tiles:BLOCK_M=16");
  EXPECT_THAT(request.seed_from(), ::testing::ElementsAre("b1.h2.q8.d64.f16"));
  EXPECT_EQ(Run({"tune", problem, "--seed-from", "b1"}), 2);
  for (const char* fixed : {"BLOCK_M", "BLOCK_M=high", "=64", "BLOCK_M==64"}) {
    EXPECT_EQ(Run({"tune", problem, "--fix", fixed}), 2);
    EXPECT_THAT(err, HasSubstr(absl::StrCat("--fix is ", fixed, "; allowed: NAME=VALUE with an integer")));
  }
}

TEST_F(FollowTest, ATimeThatDidNotSettleSaysSo) {
  v1::Operation tuning = attune::testing::SucceededTuning();
  fake.EndsWith(tuning);
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(out, Not(HasSubstr("not settled")));
  tuning.mutable_tune()->mutable_winner()->mutable_timing()->set_settled(false);
  fake.EndsWith(tuning);
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(out, HasSubstr("not settled: interval wider than 1 %"));
}

TEST_F(FollowTest, JsonIsProgressLinesThenTheResult) {
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem, "--format=json"}), 0);
  const auto lines = JsonLines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["type"], "progress");
  EXPECT_EQ(lines[2]["type"], "tuning");
  EXPECT_EQ(lines[2]["winner"]["trial"], "trials/1");
  EXPECT_EQ(err, "");
}

TEST_F(FollowTest, TunesEveryProblemOfStandardInput) {
  fake.EndsWith(attune::testing::SucceededTuning());
  piped = absl::StrCat(problem, "\nb1.h1.q1.d64.f16\n");
  EXPECT_EQ(Run({"tune", "-"}), 0);
  EXPECT_EQ(fake.calls("Tune"), 2);
  EXPECT_EQ(attune::ToText(*attune::FromProto(fake.last_tune().problem())), "b1.h1.q1.d64.f16");
  EXPECT_EQ(fake.calls("WatchOperation"), 2);
  EXPECT_EQ(Run({"tune", problem, "b1.h1.q1.d64.f16", "--detach"}), 0);
  EXPECT_EQ(fake.calls("Tune"), 4);
  EXPECT_EQ(Run({"tune", "-", "--detach"}), 0);
  EXPECT_EQ(out, "operations/7\noperations/7\n");
  EXPECT_EQ(Run({"tune", "-", "--request-id", "mine"}), 2);
}

TEST_F(FollowTest, OneOfSeveralProblemsThatCannotStartIsSaidAndTheOthersGoOn) {
  fake.EndsWith(attune::testing::SucceededTuning());
  fake.FailNext(
      1, attune::testing::RichError(grpc::StatusCode::FAILED_PRECONDITION, "no kernel family applies", "INFEASIBLE"));
  piped = absl::StrCat("b1.h1.q1.d64.f16\n", problem, "\n");
  EXPECT_EQ(Run({"tune", "-"}), 8) << "nothing is feasible";
  EXPECT_THAT(err, HasSubstr("attune: b1.h1.q1.d64.f16: no kernel family applies [INFEASIBLE]\n"));
  EXPECT_EQ(fake.calls("WatchOperation"), 1);
  EXPECT_THAT(out, HasSubstr("promoted: "));
}

TEST_F(FollowTest, ServePinsTheVariant) {
  fake.EndsWith(attune::testing::EndedEvaluation(v1::EvaluateResult::DECISION_PINNED));
  EXPECT_EQ(Run({"serve", problem, attune::testing::FakeAttune::kVariant, "--why", "as last month"}), 0);
  EXPECT_THAT(out, HasSubstr("PINNED"));
  EXPECT_TRUE(fake.last_evaluate().pin());
  EXPECT_EQ(fake.last_evaluate().why(), "as last month");
  fake.EndsWith(attune::testing::EndedEvaluation(v1::EvaluateResult::DECISION_REVERT));
  EXPECT_EQ(Run({"serve", problem, attune::testing::FakeAttune::kVariant}), 5) << "it was wrong, and is not served";
  EXPECT_EQ(Run({"evaluate", problem, attune::testing::FakeAttune::kVariant}), 5);
  EXPECT_FALSE(fake.last_evaluate().pin());
}

TEST_F(FollowTest, AFailureOfManyLinesIsOne) {
  v1::Operation failed;
  failed.set_name("operations/7");
  failed.set_state(v1::Operation::STATE_FAILED);
  failed.set_done(true);
  failed.mutable_error()->set_message("does not compile: CRASHED\nthe compiler was killed");
  fake.EndsWith(failed);
  EXPECT_EQ(Run({"tune", problem}), 6);
  EXPECT_THAT(err, HasSubstr("failed: does not compile: CRASHED; the compiler was killed\n"));
}

TEST_F(FollowTest, TuneDetachedPrintsTheOperationsNameAlone) {
  EXPECT_EQ(Run({"tune", problem, "--detach"}), 0);
  EXPECT_EQ(out, "operations/7\n");
  EXPECT_EQ(fake.calls("WatchOperation"), 0);
}

TEST_F(FollowTest, QuietShowsTheResultWithoutTheProgress) {
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(err, HasSubstr("operations/7 done"));
  EXPECT_EQ(Run({"tune", problem, "--quiet"}), 0);
  EXPECT_EQ(err, "");
  EXPECT_THAT(out, HasSubstr("promoted: "));
  EXPECT_EQ(Run({"-q", "tune", problem, "--format=json"}), 0);
  EXPECT_EQ(JsonLines().size(), 1u);
}

TEST_F(FollowTest, TuningWithoutAnyGoodVariantIsInfeasible) {
  v1::Operation nothing = attune::testing::SucceededTuning();
  nothing.mutable_tune()->clear_winner();
  nothing.mutable_tune()->clear_incumbent();
  fake.EndsWith(nothing);
  EXPECT_EQ(Run({"tune", problem}), 8);
}

TEST_F(FollowTest, AFailedOperationSaysWhy) {
  v1::Operation failed = attune::testing::SucceededTuning();
  failed.set_state(v1::Operation::STATE_FAILED);
  failed.clear_response();
  failed.mutable_error()->set_message("the device is gone");
  fake.EndsWith(failed);
  EXPECT_EQ(Run({"tune", problem}), 6);
  EXPECT_THAT(err, HasSubstr("tune b2.h8.q512.d64.f16 on cuda:0 (operations/7) failed: the device is gone"));
}

TEST_F(FollowTest, EvaluateSaysKeepOrRevertWithItsExitCode) {
  fake.EndsWith(attune::testing::EndedEvaluation(v1::EvaluateResult::DECISION_KEEP));
  EXPECT_EQ(Run({"evaluate", problem, attune::testing::FakeAttune::kVariant}), 0);
  EXPECT_THAT(out, HasSubstr("KEEP  1.10x the incumbent"));
  fake.EndsWith(attune::testing::EndedEvaluation(v1::EvaluateResult::DECISION_REVERT));
  EXPECT_EQ(Run({"evaluate", problem, attune::testing::FakeAttune::kVariant}), 5);
  EXPECT_THAT(out, HasSubstr("REVERT"));
  EXPECT_EQ(Run({"evaluate", problem, "nosuch:X=1"}), 3);
}

TEST_F(FollowTest, SweepWritesItsReportsAlsoWhenThereIsARegression) {
  const std::string folder = ::testing::TempDir();
  ASSERT_TRUE(ReplaceFile(folder + "/plan.textproto", absl::StrCat("shapes { problem: \"", problem, "\" }")).ok());
  const std::vector<std::string> line = {"sweep",          folder + "/plan.textproto", "--report-md", folder + "/r.md",
                                         "--report-json",  folder + "/r.json",         "--device",    "cuda:1",
                                         "--report-junit", folder + "/r.xml"};
  fake.EndsWith(attune::testing::EndedSweep(false));
  EXPECT_EQ(Run(line), 0);
  EXPECT_THAT(out, HasSubstr("no regression"));
  EXPECT_EQ(fake.last_sweep().plan().device_id(), "cuda:1");
  fake.EndsWith(attune::testing::EndedSweep(true));
  EXPECT_EQ(Run(line), 5);
  EXPECT_THAT(out, HasSubstr("SLOWER"));
  EXPECT_THAT(out, HasSubstr(" +21.4 % ")) << "of the time, as in Markdown";
  EXPECT_EQ(*ReadFile(folder + "/r.md"), "# nightly\n");
  EXPECT_EQ(Json::parse(*ReadFile(folder + "/r.json"))["regression"], true);
  EXPECT_THAT(*ReadFile(folder + "/r.xml"), HasSubstr("<failure type=\"SLOWER\""));
}

TEST_F(FollowTest, WhatTheCommandLineSaysOfASweepsSearchHolds) {
  const std::string plan = ::testing::TempDir() + "/plan.textproto";
  ASSERT_TRUE(ReplaceFile(plan, absl::StrCat("shapes { problem: \"", problem,
                                             "\" } strategy: KIND_EVOLUTION effort: EFFORT_FULL "
                                             "objective: OBJECTIVE_ENERGY"))
                  .ok());
  fake.EndsWith(attune::testing::EndedSweep(false));
  const auto asked = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"sweep", plan});
    EXPECT_EQ(Run(options), 0);
    return fake.last_sweep().plan();
  };
  EXPECT_EQ(asked({}).strategy(), v1::Strategy::KIND_EVOLUTION);
  EXPECT_EQ(asked({}).effort(), v1::Strategy::EFFORT_FULL);
  EXPECT_EQ(asked({}).objective(), v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(asked({"--effort", "quick"}).strategy(), v1::Strategy::KIND_GUIDED);
  EXPECT_EQ(asked({"--effort", "quick"}).effort(), v1::Strategy::EFFORT_QUICK);
  EXPECT_EQ(asked({"--strategy", "random"}).strategy(), v1::Strategy::KIND_RANDOM);
  EXPECT_EQ(asked({"--strategy", "random"}).effort(), v1::Strategy::EFFORT_UNSPECIFIED) << "it keeps none";
  EXPECT_EQ(asked({"--objective", "time"}).objective(), v1::OBJECTIVE_TIME);
  EXPECT_EQ(Run({"sweep", plan, "--strategy", "random", "--effort", "full"}), 2);
}

TEST_F(FollowTest, GitHubIsToldOfARegressionAndGetsTheReport) {
  const std::string folder = ::testing::TempDir();
  const std::string page = folder + "/summary.md";
  ASSERT_TRUE(ReplaceFile(folder + "/plan.textproto", absl::StrCat("shapes { problem: \"", problem, "\" }")).ok());
  ASSERT_TRUE(ReplaceFile(page, "of an earlier step\n").ok());
  fake.EndsWith(attune::testing::EndedSweep(true));
  EXPECT_EQ(Run({"sweep", folder + "/plan.textproto"}), 5);
  EXPECT_THAT(err, Not(HasSubstr("::error")));
  variables["GITHUB_STEP_SUMMARY"] = page;
  EXPECT_EQ(Run({"sweep", folder + "/plan.textproto", "--github"}), 5);
  EXPECT_THAT(err, HasSubstr("::error title=SLOWER "));
  EXPECT_EQ(*ReadFile(page), "of an earlier step\n# nightly\n\n");
  variables["GITHUB_STEP_SUMMARY"] = "/nonexistent/summary";
  EXPECT_EQ(Run({"sweep", folder + "/plan.textproto", "--github"}), 3);
  EXPECT_THAT(err, HasSubstr("could not be added to /nonexistent/summary"));
}

TEST_F(FollowTest, AReportThatCannotBeWrittenIsSaidBeforeTheSweep) {
  const std::string plan = ::testing::TempDir() + "/early.textproto";
  ASSERT_TRUE(ReplaceFile(plan, absl::StrCat("shapes { problem: \"", problem, "\" }")).ok());
  for (const std::string option : {"--report-md", "--report-json", "--report-junit"}) {
    EXPECT_EQ(Run({"sweep", plan, option, "/nonexistent/r"}), 3);
    EXPECT_THAT(err, HasSubstr("cannot create a file beside '/nonexistent/r'"));
    EXPECT_EQ(Run({"sweep", plan, option, ::testing::TempDir()}), 2);
    EXPECT_THAT(err, HasSubstr("it is a directory"));
    EXPECT_EQ(Run({"sweep", plan, option, ::testing::TempDir() + "/r", "--detach"}), 2) << "nobody would write it";
    EXPECT_THAT(err, HasSubstr(option));
  }
  EXPECT_EQ(fake.calls("Sweep"), 0);
}

TEST_F(FollowTest, ASweepsTableIsPrintedAlsoWhenItsReportCannotBeWritten) {
  const std::string folder = ::testing::TempDir() + "/goes_away";
  std::filesystem::create_directory(folder);
  const std::string plan = ::testing::TempDir() + "/late.textproto";
  ASSERT_TRUE(ReplaceFile(plan, absl::StrCat("shapes { problem: \"", problem, "\" }")).ok());
  fake.HoldWatches([&] {
    std::filesystem::remove_all(folder);
    fake.HasOperation(attune::testing::EndedSweep(false));
  });
  EXPECT_EQ(Run({"sweep", plan, "--report-md", folder + "/r.md"}), 3);
  EXPECT_THAT(out, HasSubstr("no regression"));
  EXPECT_THAT(err, HasSubstr("cannot create a file beside"));
}

TEST_F(FollowTest, ARowThatFailedFailsTheSweep) {
  ASSERT_TRUE(ReplaceFile(::testing::TempDir() + "/f.textproto", "shapes { problem: \"b1.h1.q1.d64.f16\" }").ok());
  v1::Operation sweep = attune::testing::EndedSweep(false);
  sweep.mutable_sweep()->mutable_rows(0)->set_outcome(v1::SweepReport::OUTCOME_FAILED);
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"sweep", ::testing::TempDir() + "/f.textproto"}), 6);
  EXPECT_THAT(out, HasSubstr(", 1 FAILED; no regression"));
  sweep.mutable_sweep()->set_regression(true);
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"watch", "7"}), 9) << "neither hides the other";
}

TEST_F(FollowTest, ASweepOfWhichEveryRowFailedHasItsReportAllTheSame) {
  const std::string plan = ::testing::TempDir() + "/e.textproto", report = ::testing::TempDir() + "/e.md";
  ASSERT_TRUE(ReplaceFile(plan, "shapes { problem: \"b1.h1.q1.d64.f16\" }").ok());
  v1::Operation sweep = attune::testing::EndedSweep(false);
  for (auto& row : *sweep.mutable_sweep()->mutable_rows()) row.set_outcome(v1::SweepReport::OUTCOME_FAILED);
  sweep.set_state(v1::Operation::STATE_FAILED);
  sweep.mutable_error()->set_message("all problems FAILED");
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"sweep", plan, "--report-md", report}), 6);
  EXPECT_THAT(out, HasSubstr(" FAILED; no regression"));
  EXPECT_THAT(err, HasSubstr("failed: all problems FAILED"));
  EXPECT_TRUE(std::filesystem::remove(report));
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"sweep", plan, "--format=json"}), 6);
  EXPECT_EQ(JsonLines().back()["type"], "sweep");
  EXPECT_EQ((JsonLines().end() - 2)->at("error"), "all problems FAILED");
  sweep.mutable_sweep()->set_regression(true);
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"watch", "7"}), 9) << "neither hides the other";
}

TEST_F(FollowTest, ASweepThatSkippedMostIsNoSuccess) {
  ASSERT_TRUE(ReplaceFile(::testing::TempDir() + "/s.textproto", "shapes { problem: \"b1.h1.q1.d64.f16\" }").ok());
  v1::Operation sweep = attune::testing::EndedSweep(false);
  const v1::SweepReport::Row done = sweep.sweep().rows(0);
  v1::SweepReport& report = *sweep.mutable_sweep();
  report.clear_rows();
  for (const auto outcome : {v1::SweepReport::OUTCOME_SAME, v1::SweepReport::OUTCOME_SKIPPED}) {
    v1::SweepReport::Row& row = *report.add_rows() = done;
    row.set_outcome(outcome);
  }
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"sweep", ::testing::TempDir() + "/s.textproto"}), 0) << "half of them";
  EXPECT_THAT(err, HasSubstr("1 of 2 problems SKIPPED: the sweep's total time was spent"));
  report.mutable_rows(0)->set_outcome(v1::SweepReport::OUTCOME_SKIPPED);
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"watch", "7"}), 7);
  report.mutable_rows(0)->set_outcome(v1::SweepReport::OUTCOME_FAILED);
  fake.EndsWith(sweep);
  EXPECT_EQ(Run({"watch", "7"}), 6);
}

TEST_F(FollowTest, CtrlCAwayFromATerminalDetaches) {
  PressWhenWatching();
  EXPECT_EQ(Run({"tune", problem}), 130);
  EXPECT_THAT(err, HasSubstr("attune watch operations/7"));
  EXPECT_EQ(fake.calls("CancelOperation"), 0);
}

TEST_F(FollowTest, CtrlCOnATerminalAsksAndCancels) {
  terminal = true;
  typed = {"c"};
  PressWhenWatching();
  EXPECT_EQ(Run({"tune", problem}), 6);
  EXPECT_THAT(err, HasSubstr("[d]etach"));
  EXPECT_THAT(err, HasSubstr("was cancelled"));
  EXPECT_EQ(fake.calls("CancelOperation"), 1);
}

TEST_F(FollowTest, CtrlCOnATerminalAsksAndDetaches) {
  terminal = true;
  typed = {"d"};
  PressWhenWatching();
  EXPECT_EQ(Run({"tune", problem}), 130);
  EXPECT_EQ(fake.calls("CancelOperation"), 0);
}

TEST_F(FollowTest, ASecondCtrlCDetaches) {
  terminal = true;
  PressWhenWatching();
  EXPECT_EQ(Run({"tune", problem}), 130);
}

TEST_F(FollowTest, WatchingOnIsAChoiceToo) {
  terminal = true;
  typed = {"w", "d"};
  PressWhenWatching();
  EXPECT_EQ(Run({"tune", problem}), 130);
  EXPECT_EQ(fake.calls("WatchOperation"), 2);
}

TEST_F(FollowTest, WatchAndCancelTakeAnOperationsNumber) {
  ASSERT_EQ(Run({"tune", problem, "--detach"}), 0);
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"watch", "7"}), 0);
  EXPECT_THAT(out, HasSubstr("promoted"));
  EXPECT_EQ(Run({"cancel", "operations/7"}), 0);
  EXPECT_EQ(out, "operations/7 CANCELLED\n");
  EXPECT_EQ(Run({"watch", "7"}), 6) << "it is over already";
}

TEST_F(FollowTest, WhatCannotBeSeenForAWhileIsSaidOnce) {
  fake.EndsWith(attune::testing::SucceededTuning());
  fake.BreakWatches(2);
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(err, HasSubstr("; the operation is not seen until the server answers\n"));
  EXPECT_THAT(err, HasSubstr("operations/7 is seen again\n"));
  fake.EndsWith(attune::testing::SucceededTuning());
  fake.BreakWatches(1);
  EXPECT_EQ(Run({"tune", problem, "--quiet"}), 0);
  EXPECT_EQ(err, "");
}

TEST_F(FollowTest, ATerminalIsRedrawnInPlace) {
  terminal = true;
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem, "--no-color"}), 0);
  EXPECT_THAT(err, HasSubstr("\033[3A")) << "the second frame goes over the three lines of the first";
  EXPECT_THAT(err, Not(HasSubstr("\033[1m")));
}

TEST(ProcessInterrupts, HearsTheProcessesOwnSigint) {
  const auto interrupts = ProcessInterrupts();
  absl::Notification heard;
  const auto listener = interrupts->Listen([&] {
    if (!heard.HasBeenNotified()) heard.Notify();
  });
  raise(SIGINT);
  EXPECT_TRUE(heard.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

}  // namespace
}  // namespace attune::cli
