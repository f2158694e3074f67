#include "client/cli/progress.h"

#include "client/cli/styled_text.h"
#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ResultOf;

v1::Operation Running() {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_title("tune b2.h8.q512.d64.f16 on cuda:0");
  v1::OperationProgress& progress = *operation.mutable_progress();
  progress.set_phase(v1::OperationProgress::PHASE_TRIALS);
  progress.set_trials_done(45);
  progress.set_trials_total(180);
  progress.set_trials_reused(5);
  progress.mutable_elapsed()->set_seconds(20);
  progress.mutable_eta()->set_seconds(67);
  progress.set_device_busy(0.93);
  *progress.mutable_best() = attune::testing::CannedTrial(1);
  auto* ok = progress.add_verdicts();
  ok->set_verdict(v1::VERDICT_OK);
  ok->set_count(40);
  auto* wrong = progress.add_verdicts();
  wrong->set_verdict(v1::VERDICT_WRONG_RESULT);
  wrong->set_count(5);
  return operation;
}

TEST(RenderProgress, ShowsBarRateEtaBusyShareBestAndVerdicts) {
  EXPECT_THAT(RenderProgress(Running(), 200, false),
              ElementsAre("tune b2.h8.q512.d64.f16 on cuda:0  trials",
                          "[==========>                             ] 45/180 trials  2.0/s  ETA 1:07  device 93% "
                          "busy  5 reused",
                          "best 41.20 us  attention_wmma:BLOCK_M=64,KV_SPLITS=4", "OK 40  WRONG_RESULT 5  "));
}

TEST(RenderProgress, NamesTheCardsOfATuningOnSeveral) {
  v1::Operation operation = Running();
  for (const char* id : {"cuda:0", "cuda:1", "cuda:2", "cuda:3"}) {
    v1::CardShare& card = *operation.mutable_progress()->add_cards();
    card.set_device_id(id);
    card.set_at_work(card.device_id() < "cuda:2");
  }
  EXPECT_THAT(RenderProgress(operation, 200, false)[1], HasSubstr("5 reused  on cuda:0, cuda:1"));
  operation.mutable_progress()->mutable_cards(3)->set_lost("gone");
  EXPECT_THAT(RenderProgress(operation, 200, false)[1], HasSubstr("on cuda:0, cuda:1, without cuda:3"));
  EXPECT_THAT(ProgressLogLine(operation), HasSubstr("on cuda:0, cuda:1, without cuda:3"));
}

TEST(RenderProgress, KeepsToTheTerminalsWidth) {
  for (const size_t width : {20u, 40u, 68u, 69u, 80u, 100u}) {
    EXPECT_THAT(RenderProgress(Running(), width, false), Each(ResultOf(DisplayWidth, ::testing::Le(width))))
        << "width " << width;
  }
}

TEST(RenderProgress, ShowsThePhaseBehindATitleThatIsTooLong) {
  v1::Operation operation = Running();
  operation.set_title("evaluate b2.h8.q512.d64.f16 on cuda:0: attention_wmma:BLOCK_M=64,BLOCK_N=32,KV_SPLITS=4");
  EXPECT_EQ(RenderProgress(operation, 60, false)[0], "evaluate b2.h8.q512.d64.f16 on cuda:0: attention_...  trials");
}

TEST(RenderProgress, CutsTheMessageNotThePhase) {
  v1::Operation operation = Running();
  operation.set_title("evaluate b2.h8.q512.d64.f16 on cuda:0: attention_wmma:BLOCK_M=64,BLOCK_N=32,KV_SPLITS=4");
  operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_PLAY_OFF);
  operation.mutable_progress()->set_message("interleaved with the incumbent");
  EXPECT_EQ(RenderProgress(operation, 60, false)[0], "evaluate b2.h8.q512.d64.f16 on cuda:0: attentio...  play-off");
  operation.set_title("tune b2.h8.q512.d64.f16 on cuda:0");
  EXPECT_EQ(RenderProgress(operation, 60, false)[0], "tune b2.h8.q512.d64.f16 on cuda:0  play-off  interleaved ...");
  EXPECT_EQ(RenderProgress(operation, 50, false)[0], "tune b2.h8.q512.d64.f16 on cuda:0  play-off");
}

TEST(RenderProgress, SaysDoneOnce) {
  v1::Operation operation = Running();
  operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_DONE);
  operation.mutable_progress()->set_message("done");
  EXPECT_EQ(RenderProgress(operation, 0, false)[0], "tune b2.h8.q512.d64.f16 on cuda:0  done");
}

TEST(RenderProgress, SlowTrialsHaveARateToo) {
  v1::Operation operation = Running();
  operation.mutable_progress()->mutable_elapsed()->set_seconds(1000);
  EXPECT_THAT(RenderProgress(operation, 0, false)[1], HasSubstr("45/180 trials  0.04/s"));
}

TEST(RenderProgress, HasEveryFigureOnEightyColumns) {
  v1::Operation operation = Running();
  operation.mutable_progress()->set_compiles_done(40);
  operation.mutable_progress()->set_compiles_total(120);
  EXPECT_EQ(RenderProgress(operation, 80, false)[1],
            "45/180 trials  2.0/s  ETA 1:07  compiled 40/120  device 93% busy  5 reused");
  EXPECT_EQ(RenderProgress(operation, 100, false)[1],
            "[=====>                 ] 45/180 trials  2.0/s  ETA 1:07  compiled 40/120  device 93% busy  5 reused");
  EXPECT_EQ(RenderProgress(operation, 60, false)[1], "[==>       ] 45/180 trials  2.0/s  ETA 1:07  compiled 40/120")
      << "what matters least goes first, and whole";
}

TEST(RenderProgress, SaysWhomItWaitsFor) {
  v1::Operation operation;
  operation.set_title("tune b1.h1.q64.d32.f16 on cuda:0");
  v1::OperationProgress& progress = *operation.mutable_progress();
  progress.set_phase(v1::OperationProgress::PHASE_REFERENCE);
  progress.set_message("inputs and reference results");
  progress.set_waits_for("operations/6");
  progress.set_waits_for_title("tune b2.h8.q512.d64.f16 on cuda:0");
  progress.set_queue_position(1);
  EXPECT_THAT(RenderProgress(operation, 0, false),
              ElementsAre("tune b1.h1.q64.d32.f16 on cuda:0  reference",
                          "1 job ahead: waiting for operations/6 (tune b2.h8.q512.d64.f16 on cuda:0)"));
}

TEST(RenderProgress, ASweepsBarAndEtaAreOfItsProblems) {
  v1::Operation operation = Running();
  operation.mutable_progress()->set_problems_done(3);
  operation.mutable_progress()->set_problems_total(12);
  const std::vector<std::string> lines = RenderProgress(operation, 80, false);
  EXPECT_EQ(lines[1], "[==========>                             ] 3/12 problems  ETA 1:07");
  EXPECT_EQ(lines[2], "45/180 trials  device 93% busy  5 reused");
}

TEST(RenderProgress, LeavesOutWhatIsNotKnownYet) {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_QUEUED);
  EXPECT_THAT(RenderProgress(operation, 80, false), ElementsAre("operations/7  queued"));
}

TEST(RenderProgress, AFullBarHasNoTip) {
  v1::Operation operation = Running();
  operation.mutable_progress()->set_trials_done(180);
  EXPECT_THAT(RenderProgress(operation, 200, false)[1],
              ::testing::StartsWith("[" + std::string(40, '=') + "] 180/180"));
}

TEST(RenderProgress, ColoursAreThereOnlyWhenAskedFor) {
  for (const std::string& line : RenderProgress(Running(), 120, false)) {
    EXPECT_EQ(line.find('\033'), std::string::npos) << line;
  }
  EXPECT_NE(RenderProgress(Running(), 120, true)[3].find("\033[31mWRONG_RESULT 5"), std::string::npos);
}

TEST(TrialsPerSecond, DoesNotCountReusedTrials) {
  EXPECT_DOUBLE_EQ(TrialsPerSecond(Running().progress()), 2);
  EXPECT_DOUBLE_EQ(TrialsPerSecond(v1::OperationProgress()), 0);
}

TEST(ProgressLogLine, SaysWhatHoldsTheOperationUpAndNotEachStep) {
  v1::Operation operation = Running();
  operation.mutable_progress()->set_message("timing attention_simt:VEC=4");
  EXPECT_THAT(ProgressLogLine(operation), Not(HasSubstr("timing")));
  operation.mutable_progress()->set_message("waiting for the store: the database is away: no\n\tanswer");
  EXPECT_THAT(ProgressLogLine(operation), HasSubstr("waiting for the store: the database is away: no"));
  EXPECT_EQ(ProgressLogLine(operation).find('\n'), std::string::npos);
  operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_ENUMERATE);
  operation.mutable_progress()->set_message("goes on after hosts/a was lost");
  EXPECT_THAT(ProgressLogLine(operation), HasSubstr("goes on after hosts/a was lost"));
}

TEST(ProgressLogLine, IsOneLine) {
  EXPECT_EQ(ProgressLogLine(Running()),
            "operations/7 trials  45/180 trials  2.0/s  ETA 1:07  device 93% busy  5 reused  best 41.20 us  "
            "attention_wmma:BLOCK_M=64,KV_SPLITS=4");
}

}  // namespace
}  // namespace attune::cli
