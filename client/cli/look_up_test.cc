// The commands that look answers up, and what is known of them, against a server with canned answers.
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/cli.h"
#include "client/cli/testing/fake_world.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using LookUpTest = CliTest;

TEST_F(LookUpTest, BestShowsTheAnswerAndItsLaunch) {
  const std::string artifact = ::testing::TempDir() + "/best.cubin";
  EXPECT_EQ(Run({"best", problem, "--artifact", artifact}), 0);
  for (const char* text : {attune::testing::FakeAttune::kVariant, "EXACT", "41.20 us", "1.31x torch-sdpa-flash",
                           "attention_forward *", "8x16x4", "Q, partial, 512", "scratch partial: 4096 bytes"}) {
    EXPECT_THAT(out, HasSubstr(text));
  }
  EXPECT_EQ(*ReadFile(artifact), "CUBIN");
  EXPECT_EQ(Run({"best", problem, "--format=json"}), 0);
  const Json answer = JsonLines()[0];
  EXPECT_DOUBLE_EQ(answer["latency_ms"], 0.0412);
  EXPECT_EQ(answer["recipe"]["launches"][0]["grid"], Json::parse("[8,16,4]"));
}

TEST_F(LookUpTest, BestHasAnObjective) {
  fake.HasAnAlternative();
  EXPECT_EQ(Run({"best", problem, "--objective", "energy"}), 0) << err;
  EXPECT_EQ(fake.last_get_best().objective(), v1::OBJECTIVE_ENERGY);
  EXPECT_THAT(out, HasSubstr(attune::testing::FakeAttune::kLeastEnergy));
  EXPECT_THAT(out, ContainsRegex("best by +energy"));
  EXPECT_EQ(Run({"best", problem, "--objective=energy", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["objective"], "energy");
  EXPECT_EQ(Run({"best", problem, "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["objective"], "time");
  EXPECT_EQ(Run({"best", problem, "--objective=watts"}), 2);
  EXPECT_THAT(err, HasSubstr("--objective is 'watts'; allowed: time, energy, edp"));
  EXPECT_EQ(Run({"explain", problem, "--objective=edp"}), 0) << err;
  EXPECT_EQ(fake.last_explain().best().objective(), v1::OBJECTIVE_EDP);
  EXPECT_EQ(Run({"explain", "trials/1", "--objective=edp"}), 2);
}

TEST_F(LookUpTest, TrialsFollowsThePagesUpToTheLimit) {
  EXPECT_EQ(Run({"trials", problem, "--verdict", "ok", "--fastest", "--format=json"}), 0);
  ASSERT_EQ(JsonLines().size(), 2u);
  EXPECT_EQ(JsonLines()[1]["verdict"], "WRONG_RESULT");
  EXPECT_EQ(fake.last_list_trials().filter().problem(), problem);
  EXPECT_EQ(fake.last_list_trials().filter().verdicts(0), v1::VERDICT_OK);
  EXPECT_EQ(fake.last_list_trials().filter().policy(), v1::POLICY_UNSPECIFIED);
  EXPECT_EQ(fake.last_list_trials().order(), v1::ListTrialsRequest::ORDER_FASTEST);
  EXPECT_EQ(Run({"trials", "--limit", "1", "--format=json"}), 0);
  EXPECT_EQ(JsonLines().size(), 1u);
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, HasSubstr("WRONG_RESULT"));
  EXPECT_EQ(Run({"trials", "trials/2"}), 0);
  EXPECT_THAT(out, HasSubstr("row 63 of 512 is off by 0.25"));
  EXPECT_EQ(Run({"trials", "2"}), 0);
  EXPECT_THAT(out, HasSubstr("row 63 of 512 is off by 0.25"));
}

TEST_F(LookUpTest, TrialsAreCommaSeparatedWhereAsked) {
  EXPECT_EQ(Run({"trials", problem, "--csv"}), 0);
  const std::vector<std::string> lines = absl::StrSplit(out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("trial,problem,device,policy,verdict,detail,variant,family,latency_ms,"));
  EXPECT_THAT(lines[2], HasSubstr("WRONG_RESULT,"));
  for (const char* other : {"latency_quantiles_ms", "profile", "sanitizing"})
    EXPECT_THAT(lines[0], Not(HasSubstr(other)));
  EXPECT_EQ(Run({"trials", "2", "--csv"}), 0);
  EXPECT_THAT(out, HasSubstr(lines[2].substr(0, lines[2].find(','))));
  EXPECT_EQ(Run({"trials", problem, "--csv", "--format=json"}), 2);
  EXPECT_THAT(err, HasSubstr("--csv and --format=json"));
}

TEST_F(LookUpTest, ExplainSaysWhatBoundsInWords) {
  EXPECT_EQ(Run({"explain", "1"}), 0);
  EXPECT_THAT(out, HasSubstr("1. GRID: 2 CTAs on 58 SMs leave 96.6 % of the device idle"));
  EXPECT_THAT(out, HasSubstr("Try: raise KV_SPLITS"));
  EXPECT_EQ(Run({"explain", problem, "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["findings"][0]["bound"], "GRID");
}

TEST_F(LookUpTest, ExplainTakesASubmissionAndWhichOfItsProblems) {
  EXPECT_EQ(Run({"explain", "submissions/7"}), 0) << err;
  EXPECT_EQ(fake.last_explain().submission(), "submissions/7");
  EXPECT_FALSE(fake.last_explain().has_submission_problem());
  EXPECT_THAT(out, HasSubstr("1. GRID: "));
  EXPECT_EQ(Run({"explain", "submissions/7", "--problem", problem}), 0) << err;
  EXPECT_EQ(fake.last_explain().submission_problem().head_dim(), 64);
  EXPECT_EQ(Run({"explain", "trials/1", "--problem", problem}), 2);
  EXPECT_THAT(err, HasSubstr("--problem is given with trials/1; it is allowed with a submission alone"));
  EXPECT_EQ(fake.calls("Explain"), 2);
}

TEST_F(LookUpTest, MissesAreListedWithWhatTheyGot) {
  EXPECT_EQ(Run({"misses"}), 0);
  EXPECT_THAT(out, ContainsRegex("b4.h32.kvh8.q1000.d128.bf16.causal.bshd .*1234 .*NEAREST +COMPILING"));
  EXPECT_THAT(out, ContainsRegex("b2.h8.q512.d64.f16 .* 1 .*none"));
  EXPECT_EQ(Run({"misses", "--limit", "1", "--format=json"}), 0);
  ASSERT_EQ(JsonLines().size(), 1u);
  EXPECT_EQ(JsonLines()[0]["count"], 1234);
  EXPECT_EQ(JsonLines()[0]["artifact_state"], "COMPILING");
  EXPECT_EQ(Run({"misses", "--limit", "2"}), 0);
  EXPECT_EQ(err, "The first 2; --limit 0 shows all.\n");
}

TEST_F(LookUpTest, BestWaitsForCode) {
  fake.HasCode({v1::ARTIFACT_STATE_COMPILING});
  EXPECT_EQ(Run({"best", problem, "--wait", "2500ms"}), 0);
  EXPECT_EQ(fake.last_get_best().wait().seconds(), 2);
  EXPECT_EQ(fake.last_get_best().wait().nanos(), 500'000'000);
  EXPECT_THAT(out, HasSubstr("being compiled"));
  EXPECT_EQ(Run({"best", problem}), 0);
  EXPECT_FALSE(fake.last_get_best().has_wait());
  EXPECT_EQ(Run({"best", problem, "--wait", "5"}), 2);
  EXPECT_EQ(Run({"best", problem, "--artifact", ::testing::TempDir() + "/none.cubin"}), 3);
  EXPECT_THAT(err, HasSubstr("its code is being compiled (--wait 30s waits for it)"));
}

TEST_F(LookUpTest, WarmAsksUntilThereIsCode) {
  fake.HasCode({v1::ARTIFACT_STATE_COMPILING, v1::ARTIFACT_STATE_COMPILING, v1::ARTIFACT_STATE_READY});
  EXPECT_EQ(Run({"warm", problem}), 0);
  EXPECT_EQ(fake.calls("GetBest"), 3);
  EXPECT_TRUE(fake.last_get_best().has_wait());
  EXPECT_THAT(out, HasSubstr("ready"));
  EXPECT_THAT(err, HasSubstr("1 of 1 problem can be launched"));
  EXPECT_EQ(Run({"warm", problem, "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["artifact_state"], "READY");
}

TEST_F(LookUpTest, WarmSaysWhatHasNoCodeAndWhy) {
  fake.HasCode({v1::ARTIFACT_STATE_NONE});
  EXPECT_EQ(Run({"warm", problem}), 3);
  EXPECT_THAT(out, HasSubstr("none: it does not compile"));
  EXPECT_THAT(err, HasSubstr("0 of 1 problem can be launched"));
  fake.HasCode({v1::ARTIFACT_STATE_COMPILING});
  EXPECT_EQ(Run({"warm", problem, "--max-time", "1ms"}), 7);
  EXPECT_THAT(out, HasSubstr("being compiled"));
}

TEST_F(LookUpTest, WarmTakesPlansAndGoesOnAfterAnError) {
  const std::string plan = absl::StrCat(::testing::TempDir(), "/warm-", getpid(), ".textproto");
  std::ofstream(plan) << "shapes { product { batch: [1, 2] heads_q: 8 seq_q: 512 head_dim: 64 } }\n"
                      << "device_id: \"cuda:7\" policy: POLICY_COLD";
  EXPECT_EQ(Run({"warm", plan}), 3) << "the server answers for one of the two";
  EXPECT_THAT(out, HasSubstr(problem));
  EXPECT_THAT(err, HasSubstr("b1.h8.q512.d64.f16: "));
  EXPECT_THAT(err, HasSubstr("1 of 2 problems can be launched"));
  EXPECT_EQ(fake.last_get_best().device_id(), "cuda:7");
  EXPECT_EQ(fake.last_get_best().policy(), v1::POLICY_COLD);
  EXPECT_EQ(Run({"warm", plan, "--device", "cuda:0"}), 3);
  EXPECT_EQ(fake.last_get_best().device_id(), "cuda:0") << "the command line's goes before the plan's";
  EXPECT_EQ(Run({"warm", "no-such-file.textproto"}), 2);
}

TEST_F(LookUpTest, HistorySaysWhichOneIsServed) {
  EXPECT_EQ(Run({"history", problem}), 0);
  EXPECT_THAT(out, HasSubstr("  served "));
}

TEST_F(LookUpTest, ANearestAnswerHasNoTimeOfItsOwn) {
  fake.Answers(v1::PROVENANCE_NEAREST, "from b1.h1.q61.d64.f16");
  EXPECT_EQ(Run({"best", problem}), 0);
  EXPECT_THAT(out, HasSubstr("predicted 60.00 us (four of five in 40.00..90.00); measured at b1.h1.q61.d64.f16:"));
  for (const char* own : {"interval", "max error", "1.31x"}) EXPECT_THAT(out, Not(HasSubstr(own)));
  piped = absl::StrCat(problem, "\n", problem, "\n");
  EXPECT_EQ(Run({"best", "-"}), 0);
  EXPECT_THAT(out, HasSubstr("NEAREST      ~60.00  attention_wmma"));
}

TEST_F(LookUpTest, ExplainSaysWhichTimeItExplains) {
  EXPECT_EQ(Run({"explain", problem}), 0);
  EXPECT_THAT(out, Not(HasSubstr("play-off"))) << "served with the trial's own time";
  fake.Answers(v1::PROVENANCE_EXACT, "", 56.5);
  EXPECT_EQ(Run({"explain", problem}), 0);
  EXPECT_THAT(out, HasSubstr("the trial's own time, not the 56.50 us of the play-off"));
  terminal = true;
  width = 60;
  EXPECT_EQ(Run({"explain", problem, "--no-color"}), 0);
  EXPECT_THAT(out, HasSubstr("explained  the trial's own time, not the 56.50 us of the\n           play-off"));
}

TEST_F(LookUpTest, WhatIsInfeasibleHasAnExitCodeOfItsOwn) {
  using testing::RichError;
  fake.FailNext(1, RichError(grpc::StatusCode::FAILED_PRECONDITION, "no kernel family applies", "INFEASIBLE"));
  EXPECT_EQ(Run({"tune", problem}), 8);
  EXPECT_THAT(err, HasSubstr("no kernel family applies"));
  for (const char* command : {"evaluate", "serve"}) {
    fake.FailNext(1, RichError(grpc::StatusCode::FAILED_PRECONDITION, "tiles: at most 64", "INFEASIBLE"));
    EXPECT_EQ(Run({command, problem, "tiles:BLOCK=128"}), 8);
    EXPECT_THAT(err, HasSubstr("tiles: at most 64"));
  }
  fake.FailNext(1, {grpc::StatusCode::FAILED_PRECONDITION, "device_id is 'cuda:9'"});
  EXPECT_EQ(Run({"tune", problem}), 1) << "another reason";
}

TEST_F(LookUpTest, SummaryComparesWinnersWithTheirBaselines) {
  EXPECT_EQ(Run({"summary"}), 0);
  EXPECT_THAT(out, HasSubstr("1.31x torch-sdpa-flash"));
  EXPECT_EQ(Run({"summary", "--format=json"}), 0);
  EXPECT_NEAR(JsonLines()[0]["speedups"]["torch-sdpa-flash"], 1.31, 1e-9);
  EXPECT_EQ(Run({"summary", "--policy", "cold"}), 0);
  EXPECT_EQ(out, "");
  EXPECT_EQ(err, "Nothing is tuned with policy cold yet. To start: attune tune b2.h8.q512.d64.f16\n");
}

TEST_F(LookUpTest, AnExportedSnapshotAnswersWithoutAServer) {
  const std::string file = ::testing::TempDir() + "/cli.snapshot";
  EXPECT_EQ(Run({"export", file}), 0);
  EXPECT_EQ(out, absl::StrCat("wrote 1 answer to ", file, "\n"));
  EXPECT_EQ(Run({"export", "/nope/x"}), 3);
  EXPECT_THAT(err, HasSubstr("'/nope/x'"));
  server.reset();
  EXPECT_EQ(Run({"best", problem, "--snapshot", file}), 0);
  EXPECT_THAT(out, HasSubstr("from the snapshot of"));
  EXPECT_EQ(Run({"best", problem, "--offline"}), 3) << "not imported yet";
  EXPECT_EQ(Run({"import", file, "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["problem"], problem);
  EXPECT_EQ(Run({"best", problem, "--offline"}), 0);
  EXPECT_EQ(Run({"best", problem}), 0) << "the server is unreachable, the imported snapshot is not";
  EXPECT_EQ(Run({"best", "b1.h1.q1.d64.f16", "--offline"}), 3);
}

TEST_F(LookUpTest, ASnapshotThatAnEarlierVersionKeptInTheCacheStillAnswers) {
  variables["XDG_CACHE_HOME"] = variables["XDG_DATA_HOME"] + "/cache";
  std::filesystem::create_directories(variables["XDG_CACHE_HOME"] + "/attune");
  EXPECT_EQ(Run({"export", variables["XDG_CACHE_HOME"] + "/attune/snapshot"}), 0);
  EXPECT_EQ(Run({"best", problem, "--offline"}), 0);
  variables["XDG_CACHE_HOME"] = "cache";
  EXPECT_EQ(Run({"best", problem, "--offline"}), 3) << "a relative path is ignored";
}

TEST_F(LookUpTest, ADamagedSnapshotIsOneClearLine) {
  const std::string file = ::testing::TempDir() + "/junk.snapshot";
  ASSERT_TRUE(ReplaceFile(file, "junk").ok());
  EXPECT_EQ(Run({"import", file}), 1);
  EXPECT_THAT(err, HasSubstr("is damaged"));
}

}  // namespace
}  // namespace attune::cli
