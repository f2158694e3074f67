// Every command against a server with canned answers.
#include "client/cli/cli.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/testing/fake_world.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CliTest, DevicesSaysWhichBackEndIsMissingAndWhy) {
  EXPECT_EQ(Run({"devices"}), 0);
  EXPECT_THAT(out, HasSubstr("NVIDIA L4"));
  EXPECT_THAT(out, HasSubstr("libOpenCL.so.1 is not installed"));
  EXPECT_EQ(Run({"devices", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["sm_count"], 58);
  EXPECT_EQ(JsonLines()[1]["available"], false);
}

TEST_F(CliTest, FamiliesListsThemOrShowsOne) {
  EXPECT_EQ(Run({"families"}), 0);
  EXPECT_THAT(out, HasSubstr("Online softmax on tensor cores"));
  EXPECT_EQ(Run({"families", "attention_wmma"}), 0);
  EXPECT_THAT(out, HasSubstr("BLOCK_M <= seq_q"));
  EXPECT_EQ(Run({"families", "flash"}), 3);
  EXPECT_THAT(err, HasSubstr("no family 'flash'; available: attention_wmma"));
  EXPECT_EQ(Run({"families", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["parameters"][0]["values"], Json::parse("[32,64]"));
}

TEST_F(CliTest, PreflightAndSpaceCountVariants) {
  EXPECT_EQ(Run({"preflight", problem}), 0);
  EXPECT_THAT(out, HasSubstr("\n2 variants, 0 already tried\n"));
  EXPECT_EQ(Run({"preflight", "b1.h1.q1.d64.f16"}), 8) << "nothing is feasible";
  EXPECT_EQ(Run({"space", "--family", "attention_wmma", problem}), 0);
  EXPECT_THAT(out, HasSubstr("-6  BLOCK_M <= seq_q"));
  EXPECT_THAT(out, ContainsRegex("= 2 +1 compile\n"));
  EXPECT_EQ(Run({"space", problem, "--list"}), 0);
  EXPECT_EQ(out, absl::StrCat(attune::testing::FakeAttune::kVariant, "\n"));
  EXPECT_EQ(Run({"space", problem, "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["families"][0]["removed"][0]["removed"], 6);
}

TEST_F(CliTest, TrendsAreShownAndARegressionIsTheExitCode) {
  EXPECT_EQ(Run({"trends"}), 5);
  EXPECT_THAT(out, HasSubstr("SLOWER"));
  EXPECT_THAT(out, HasSubstr("+5.0 %"));
  EXPECT_THAT(out, HasSubstr("driver 580.1 to 590.2"));
  EXPECT_THAT(err, HasSubstr("1 confirmed regression"));
  EXPECT_EQ(Run({"trends", "--all", "--format=json"}), 5);
  EXPECT_EQ(JsonLines()[1]["state"], "SLOWER");
  EXPECT_EQ(JsonLines()[1]["changes"][0]["to"], "590.2");
  EXPECT_EQ(JsonLines()[0]["change"], 0);
  EXPECT_EQ(Run({"trends", "--since", "yesterday"}), 2);
  EXPECT_THAT(err, HasSubstr("--since"));
}

TEST_F(CliTest, TimesAreCompared) {
  EXPECT_EQ(Run({"compare", "date=2026-10-31", "device=l4"}), 0);
  EXPECT_THAT(out, HasSubstr("SLOWER"));
  EXPECT_THAT(out, HasSubstr("geometric mean of 1 time: 0.80x"));
  EXPECT_EQ(Run({"compare", "date=2026-10-31", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["rows"][0]["comparison"], "SLOWER");
  EXPECT_EQ(Run({"compare", "l4"}), 2);
  EXPECT_THAT(err, HasSubstr("FROM has 'l4'; allowed: date=, device="));
}

TEST_F(CliTest, JobsHistoryRollbackAndBaselinesAreShown) {
  EXPECT_EQ(Run({"jobs"}), 0);
  EXPECT_THAT(out, HasSubstr("SUCCEEDED"));
  EXPECT_EQ(Run({"history", problem}), 0);
  EXPECT_THAT(out, HasSubstr("incumbents/1"));
  EXPECT_EQ(Run({"history", problem, "--times"}), 0);
  EXPECT_THAT(out, HasSubstr("driver 580.1 to 580.2"));
  EXPECT_EQ(Run({"history", problem, "--times", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[1]["driver"], "580.1");
  EXPECT_EQ(Run({"history", problem, "--since", "24h"}), 2) << "of times alone";
  EXPECT_EQ(Run({"history", problem, "--times", "--since", "yesterday"}), 2);
  EXPECT_THAT(err, HasSubstr("--since"));
  EXPECT_EQ(Run({"rollback", problem, "--why", "slower"}), 0);
  EXPECT_THAT(out, StartsWith("served again: attention_wmma"));
  EXPECT_EQ(Run({"baseline"}), 0);
  EXPECT_THAT(out, HasSubstr("torch-sdpa-flash"));
  EXPECT_EQ(Run({"baseline", problem, "cudnn", "39.5"}), 0);
  EXPECT_EQ(out, absl::StrCat("recorded cudnn at 39.50 us for ", problem, " on cuda:0\n"));
  EXPECT_EQ(Run({"baseline", problem, "cudnn"}), 2);
  for (const char* wrong : {"-3", "0", "inf", "nan", "fast"}) {
    EXPECT_EQ(Run({"baseline", problem, "cudnn", wrong}), 2);
    EXPECT_EQ(
        err, absl::StrCat("attune: median_us is ", wrong, "; allowed: numbers above 0 (see attune baseline --help)\n"));
  }
}

TEST_F(CliTest, ListsShowThePolicyThatIsNamed) {
  for (const std::vector<std::string>& list :
       {std::vector<std::string>{"history", problem}, {"summary"}, {"misses"}, {"baseline"}}) {
    for (const auto& [policy, listed] : {std::pair("hot", true), std::pair("cold", false)}) {
      std::vector<std::string> line = list;
      for (const char* word : {"--policy", policy, "--format=json"}) line.emplace_back(word);
      EXPECT_EQ(Run(line), 0) << list.front();
      EXPECT_EQ(!out.empty(), listed) << list.front() << " " << policy;
    }
  }
  EXPECT_EQ(Run({"history", problem, "--policy", "cold"}), 0);
  EXPECT_EQ(err, absl::StrCat(problem, " was never tuned here, policy cold. To tune it: attune tune ", problem,
                              " --policy cold\n"));
}

TEST_F(CliTest, ListsOfADeviceThatIsNotThereNameThoseThatAre) {
  for (const std::vector<std::string>& list : {std::vector<std::string>{"history", problem},
                                               {"summary"},
                                               {"jobs"},
                                               {"trials"},
                                               {"retry", "--verdict", "TIMEOUT"}}) {
    std::vector<std::string> line = list;
    for (const char* word : {"--device", "cuda:9"}) line.emplace_back(word);
    EXPECT_EQ(Run(line), 3) << list.front();
    EXPECT_EQ(err, "attune: --device is 'cuda:9'; available devices: cuda:0 (l4)\n") << list.front();
  }
}

TEST_F(CliTest, WhatIsMissingOrOfAnotherKindIsSaidWithAWayOut) {
  EXPECT_EQ(Run({"evaluate", problem, ""}), 2);
  EXPECT_THAT(err, HasSubstr("variant is empty; `attune space --list`"));
  EXPECT_EQ(Run({"sweep", ::testing::TempDir()}), 2);
  EXPECT_THAT(err, HasSubstr("is a directory"));
  EXPECT_EQ(Run({"best", problem, "--offline"}), 3);
  EXPECT_THAT(err, HasSubstr("`attune import FILE`"));
}

TEST_F(CliTest, ATuningWhoseFastestTrialLostThePlayOffSaysSo) {
  v1::Operation done = testing::SucceededTuning();
  v1::Trial& best = *done.mutable_progress()->mutable_best();
  best.set_name("trials/3");
  best.mutable_variant()->set_text("attention_wmma:BLOCK_M=32,KV_SPLITS=4");
  best.mutable_timing()->set_median_us(39.5);
  fake.EndsWith(done);
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(out,
              HasSubstr("in the play-off the winner took 41.20 us; attention_wmma:BLOCK_M=32,KV_SPLITS=4, at 39.50 "
                        "us the fastest trial, was not in it\n"));
  EXPECT_THAT(out, HasSubstr("play-off time "));
  *done.mutable_tune()->add_play_off() = best;
  done.mutable_tune()->mutable_play_off(1)->mutable_timing()->set_median_us(47);
  fake.EndsWith(done);
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(out, HasSubstr("us the fastest trial, took 47.00 us there\n"));
  fake.EndsWith(testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(out, Not(HasSubstr("the fastest trial")));
}

TEST_F(CliTest, JobsOfADeviceAreThoseOfItsCards) {
  v1::Operation waiting;
  waiting.set_name("operations/8");
  waiting.set_title("evaluate b2.h8.q512.d64.f16 on opencl:0: attention_simt:VEC=4");
  fake.HasOperation(waiting);
  EXPECT_EQ(Run({"jobs"}), 0);
  EXPECT_THAT(out, HasSubstr("operations/8"));
  for (const char* device : {"cuda:0", "l4"}) {
    EXPECT_EQ(Run({"jobs", "--device", device, "--limit", "1"}), 0);
    EXPECT_THAT(out, HasSubstr("operations/7"));
    EXPECT_THAT(out, Not(HasSubstr("operations/8")));
  }
}

TEST_F(CliTest, AFilterThatNamesNothingIsNotFound) {
  EXPECT_EQ(Run({"trials", "--family", "nope"}), 3);
  EXPECT_EQ(err, "attune: no family 'nope'; available: attention_wmma\n");
  EXPECT_EQ(Run({"trials", "--family", "attention_simt"}), 0) << "its sources are gone, its trials are not";
  EXPECT_EQ(Run({"trials", "--job", "foo"}), 3);
  EXPECT_THAT(err, StartsWith("attune: operations/foo is not known"));
  EXPECT_EQ(Run({"retry", "--verdict", "TIMEOUT", "--family", "nope"}), 3);
  EXPECT_EQ(Run({"retry", "--verdict", "TIMEOUT", "--family", "attention_wmma"}), 0);
}

TEST_F(CliTest, ABackupsNameIsNotEmpty) {
  EXPECT_EQ(Run({"backup", ""}), 2);
  EXPECT_EQ(err, "attune: name is empty; give a name or none (see attune backup --help)\n");
  EXPECT_EQ(fake.calls("CreateBackup"), 0);
}

TEST_F(CliTest, RollbackGoesToANamedIncumbent) {
  EXPECT_EQ(Run({"rollback", problem, "--to", "3"}), 0);
  EXPECT_EQ(fake.last_roll_back().to(), "incumbents/3");
  EXPECT_EQ(Run({"rollback", problem}), 0);
  EXPECT_EQ(fake.last_roll_back().to(), "");
}

TEST_F(CliTest, BackupSaysWhereItIsAndWhatItHolds) {
  EXPECT_EQ(Run({"backup", "before-upgrade"}), 0);
  EXPECT_EQ(out, "/backups/before-upgrade: 2 KiB, 14 trials, 1 incumbent, 1 artifact, checked\n");
  EXPECT_THAT(err, HasSubstr("lost 2 artifacts"));
  EXPECT_EQ(Run({"backup", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["path"], "/backups/20261122T073015Z");
  EXPECT_EQ(JsonLines()[0]["operations"], 3);
}

TEST_F(CliTest, BackupListsThemAll) {
  EXPECT_EQ(Run({"backup", "--list"}), 0);
  EXPECT_THAT(out, HasSubstr("backups/20261122T073015Z"));
  EXPECT_THAT(err, HasSubstr("They are in /backups on the server's host."));
  EXPECT_THAT(out, HasSubstr("backups/first"));
  EXPECT_EQ(fake.calls("CreateBackup"), 0);
  EXPECT_EQ(Run({"backup", "--list", "--format=json"}), 0);
  EXPECT_EQ(JsonLines().size(), 2u);
  EXPECT_EQ(Run({"backup", "--list", "name"}), 2);
}

TEST_F(CliTest, ATokensSecretIsTheOneLineOnStandardOutput) {
  EXPECT_EQ(Run({"token", "create", "ci", "--role", "tuner", "--days", "7"}), 0);
  EXPECT_EQ(out, "attune_secret\n");
  EXPECT_THAT(err, HasSubstr("tokens/ci of a tuner, until 20"));
  EXPECT_EQ(access.last_create().lifetime().seconds(), 7 * 24 * 3600);
}

TEST_F(CliTest, TokensAreListedAndRevoked) {
  EXPECT_EQ(Run({"token", "list"}), 0);
  EXPECT_THAT(out, HasSubstr("tokens/nightly"));
  EXPECT_EQ(Run({"token", "revoke", "nightly"}), 0);
  EXPECT_EQ(out, "revoked: tokens/nightly\n");
  EXPECT_EQ(Run({"token", "revoke", "tokens/none"}), 3);
  EXPECT_EQ(Run({"token", "list", "nightly"}), 2);
  EXPECT_EQ(Run({"token", "create"}), 2);
  EXPECT_EQ(Run({"token", "create", "x", "--role", "none"}), 2);
}

TEST_F(CliTest, OptionsOfTlsComeFromTheCommandLineAndElseFromTheEnvironment) {
  EXPECT_NE(Run({"devices", "--tls-ca", "/no/such/ca"}), 0);
  EXPECT_THAT(err, HasSubstr("tls_ca is '/no/such/ca', which cannot be read"));
  EXPECT_NE(Run({"devices", "--tls-cert", "/no/such/cert"}), 0);
  EXPECT_THAT(err, HasSubstr("tls_cert is '/no/such/cert' and tls_key is ''"));
  variables["ATTUNE_TLS_CERT"] = "/no/such/other";
  EXPECT_NE(Run({"devices", "--tls-key", "/no/such/key"}), 0);
  EXPECT_THAT(err, HasSubstr("tls_cert is '/no/such/other', which cannot be read"));
  EXPECT_EQ(Run({"devices", "--insecure"}), 0) << "which is what this server speaks";
  variables["ATTUNE_TLS_CERT"] = "";
  variables["ATTUNE_TLS_SERVER_NAME"] = "l4";
  EXPECT_NE(Run({"devices"}), 0);
  EXPECT_THAT(err, HasSubstr("no TLS connection to 127.0.0.1"));
}

TEST_F(CliTest, WhoamiSaysPrincipalRoleAndQuotas) {
  EXPECT_EQ(Run({"whoami"}), 0);
  EXPECT_EQ(out, "token:nightly, with the role tuner\n  quota of operations: 100\n");
  EXPECT_EQ(Run({"whoami", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0], Json::parse(R"({"type":"caller","principal":"token:nightly","role":"tuner",)"
                                        R"("quotas":{"operations":100}})"));
}

TEST_F(CliTest, CallsBringTheTokenOfTheFileThatIsNamed) {
  const std::string path = ::testing::TempDir() + "/cli-token-" + std::to_string(getpid());
  std::ofstream(path) << "attune_mine\n";
  EXPECT_EQ(Run({"token", "list", "--token-file", path}), 0);
  EXPECT_EQ(access.authorization(), "Bearer attune_mine");
  EXPECT_EQ(Run({"token", "list"}), 0);
  EXPECT_EQ(access.authorization(), "");
  variables["ATTUNE_TOKEN_FILE"] = path;
  EXPECT_EQ(Run({"token", "list"}), 0);
  EXPECT_EQ(access.authorization(), "Bearer attune_mine");
  unlink(path.c_str());
  EXPECT_EQ(Run({"token", "list"}), 3);
  EXPECT_THAT(err, HasSubstr(path));
}

TEST_F(CliTest, ABackupIsNotAskedForTwice) {
  fake.FailNext(1, attune::testing::RichError(grpc::StatusCode::UNAVAILABLE, "starting", "UNAVAILABLE"));
  EXPECT_EQ(Run({"backup"}), 4);
  EXPECT_EQ(fake.calls("CreateBackup"), 1);
}

TEST_F(CliTest, ServeUnpins) {
  fake.Pins();
  EXPECT_EQ(Run({"serve", problem, "--unpin"}), 0);
  EXPECT_EQ(fake.calls("Unpin"), 1);
  EXPECT_THAT(out, StartsWith("unpinned: attention_wmma"));
  EXPECT_EQ(Run({"serve", problem, "--unpin"}), 0);
  EXPECT_THAT(out, StartsWith("was not pinned: attention_wmma"));
  EXPECT_EQ(Run({"serve", problem, "--unpin", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["pinned"], false);
  EXPECT_EQ(Run({"serve", problem}), 2);
  EXPECT_EQ(Run({"serve", problem, attune::testing::FakeAttune::kVariant, "--unpin"}), 2);
  EXPECT_EQ(fake.calls("EvaluateVariant"), 0);
}

TEST_F(CliTest, RetryNamesTheTrialsAndSaysWhatItDid) {
  EXPECT_EQ(Run({"retry", "--verdict", "crashed", "--problem", problem, "--family", "attention_wmma"}), 0);
  EXPECT_EQ(out, absl::StrCat("14 trials of 1 problem will be tried again by the next tune or sweep; 3 failed compiles "
                              "forgotten\n",
                              problem, "\n"));
  EXPECT_EQ(fake.last_retry().filter().problem(), problem);
  EXPECT_EQ(fake.last_retry().filter().family(), "attention_wmma");
  EXPECT_EQ(fake.last_retry().filter().policy(), v1::POLICY_UNSPECIFIED) << "both, unless one is named";
  EXPECT_EQ(Run({"retry", "--verdict", "TIMEOUT"}), 0);
  EXPECT_EQ(out, "");
  EXPECT_THAT(err, HasSubstr("No such trials"));
  EXPECT_EQ(Run({"retry", "--verdict", "CRASHED", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0].dump(),
            absl::StrCat(R"({"type":"retry","trials":14,"codes":3,"problems":[")", problem, R"("]})"));
  EXPECT_EQ(Run({"retry"}), 2);
  EXPECT_EQ(Run({"retry", "--verdict", "LATE"}), 2);
  EXPECT_EQ(err,
            "attune: --verdict is 'LATE'; allowed: INFEASIBLE, COMPILE_ERROR, WRONG_RESULT, OUT_OF_BOUNDS, TIMEOUT, "
            "CRASHED, UNSTABLE\n");
  const int calls = fake.calls("RetryTrials");
  EXPECT_EQ(Run({"retry", "--verdict", "ok"}), 2);
  EXPECT_THAT(err, HasSubstr("--verdict is OK; "));
  EXPECT_THAT(err, HasSubstr("attune tune --retry-known"));
  EXPECT_EQ(Run({"retry", "--verdict", "slow"}), 2);
  EXPECT_THAT(err, HasSubstr("attune tune --retry-known"));
  EXPECT_EQ(Run({"retry", "--verdict", "LOST"}), 2);
  EXPECT_EQ(fake.calls("RetryTrials"), calls);
}

TEST_F(CliTest, CancelAllCancelsWhatIsActive) {
  EXPECT_EQ(Run({"cancel", "--all"}), 0);
  EXPECT_THAT(err, HasSubstr("No operation is queued or running"));
  EXPECT_EQ(Run({"tune", problem, "--detach"}), 0);
  EXPECT_EQ(Run({"cancel", "--all", "--problem", problem}), 0);
  EXPECT_EQ(out, "operations/7 CANCELLED\n");
  EXPECT_TRUE(fake.last_list_operations().active_only());
  EXPECT_EQ(fake.last_list_operations().problem(), problem);
  EXPECT_EQ(Run({"cancel"}), 2);
  EXPECT_EQ(Run({"cancel", "7", "--all"}), 2);
  EXPECT_EQ(Run({"cancel", "7", "--problem", problem}), 2);
}

TEST_F(CliTest, WhatHasNotEndedYetIsCancelling) {
  EXPECT_EQ(Run({"tune", problem, "--detach"}), 0);
  fake.CancelsLater();
  EXPECT_EQ(Run({"cancel", "7"}), 0);
  EXPECT_EQ(out, "operations/7 cancelling\n");
}

TEST_F(CliTest, JobsShowsTheOneThatIsNamed) {
  v1::Operation fleets;
  fleets.set_name("operations/8");
  fleets.set_title("tune b2.h8.q512.d64.f16 on l4");
  fleets.mutable_progress()->set_device_id("hosts/a/devices/cuda:0");
  fake.HasOperation(fleets);
  EXPECT_EQ(Run({"jobs", "8"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("tune b2.h8.q512.d64.f16 on l4 (hosts/a/devices/cuda:0)"));
  EXPECT_THAT(out, Not(HasSubstr("operations/7")));
  EXPECT_EQ(Run({"jobs", "operations/8", "--format=json"}), 0);
  ASSERT_EQ(JsonLines().size(), 1);
  EXPECT_EQ(JsonLines()[0]["operation"], "operations/8");
  EXPECT_EQ(Run({"jobs", "8", "--active"}), 2) << "a list's";
  EXPECT_EQ(Run({"jobs", "none"}), 3);
}

TEST_F(CliTest, JobsAsksForOneProblem) {
  EXPECT_EQ(Run({"jobs", "--problem", problem}), 0);
  EXPECT_EQ(fake.last_list_operations().problem(), problem);
  EXPECT_EQ(Run({"jobs", "--problem", "b2"}), 2);
}

TEST_F(CliTest, ADryRunSaysWhatASweepWouldDo) {
  const std::string file = ::testing::TempDir() + "/dry.textproto";
  ASSERT_TRUE(ReplaceFile(file, absl::StrCat("shapes { problem: \"", problem, "\" }")).ok());
  EXPECT_EQ(Run({"sweep", file, "--dry-run"}), 0);
  EXPECT_THAT(out, HasSubstr("tune again"));
  EXPECT_THAT(out, HasSubstr("1 problem on cuda:0: 56 trials to run, at most 14 compiles, 0 incumbents to time again; "
                             "together about 1 min 11 s\n"));
  EXPECT_EQ(fake.calls("Sweep"), 0);
  EXPECT_EQ(Run({"sweep", file, "--dry-run", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["estimate_s"], 71);
  EXPECT_EQ(JsonLines()[0]["rows"][0]["known"], 22);
}

TEST_F(CliTest, EveryTableFitsAnEightyColumnTerminal) {
  terminal = true;
  width = 80;
  const std::string file = ::testing::TempDir() + "/narrow.textproto";
  ASSERT_TRUE(ReplaceFile(file, absl::StrCat("shapes { problem: \"", problem, "\" }")).ok());
  piped = absl::StrCat(problem, "\n", problem, "\n");
  fake.EndsWith(attune::testing::SucceededTuning());
  const std::vector<std::vector<std::string>> lines = {{"trials"},
                                                       {"trends", "--all"},
                                                       {"compare", "device=l4", "device=h200"},
                                                       {"tune", problem},
                                                       {"explain", problem},
                                                       {"explain", "trials/9"},
                                                       {"rollback", problem},
                                                       {"serve", problem, "--unpin"},
                                                       {"tune", problem, "--strategy", "genetic"},
                                                       {"trials", problem},
                                                       {"trials", "trials/2"},
                                                       {"jobs"},
                                                       {"history", problem},
                                                       {"summary"},
                                                       {"best", "-"},
                                                       {"best", problem},
                                                       {"space", problem},
                                                       {"preflight", problem},
                                                       {"sweep", file, "--dry-run"},
                                                       {"devices"},
                                                       {"families"},
                                                       {"backup", "--list"},
                                                       {"baseline"},
                                                       {"misses"},
                                                       {"families", "attention_wmma"}};
  for (const std::vector<std::string>& line : lines) {
    std::vector<std::string> plain = line;
    plain.push_back("--no-color");
    Run(plain);
    EXPECT_NE(out + err, "");
    const std::string all = absl::StrReplaceAll(out + err, {{"\033[2K", ""}, {"\033[J", ""}, {"\033[3A", ""}});
    for (const absl::string_view printed : absl::StrSplit(all, '\n')) EXPECT_LE(DisplayWidth(printed), 80u) << printed;
  }
}

TEST_F(CliTest, AWaitingJobSaysSoOnEightyColumns) {
  v1::Operation waiting;
  waiting.set_name("operations/000660d3ff58db01");
  waiting.set_title("tune b1.h1.q205.d64.f16 on opencl:0");
  waiting.set_state(v1::Operation::STATE_RUNNING);
  waiting.mutable_progress()->set_phase(v1::OperationProgress::PHASE_TRIALS);
  waiting.mutable_progress()->set_waits_for("operations/7");
  waiting.mutable_progress()->set_waits_for_title("tune b1.h1.q61.d64.f16 on opencl:0");
  waiting.mutable_progress()->set_queue_position(2);
  fake.HasOperation(waiting);
  terminal = true;
  width = 80;
  EXPECT_EQ(Run({"jobs", "--no-color"}), 0);
  EXPECT_THAT(out, HasSubstr("operations/000660d3ff58db01  RUNNING    2 ahead "));
  EXPECT_THAT(out, HasSubstr("  tune b1.h1.q205.d64.f16"));
  EXPECT_THAT(out, HasSubstr("2/2 trials")) << "of the one that has ended";
  waiting.mutable_progress()->set_queue_position(0);
  waiting.mutable_progress()->set_trials_total(56);
  fake.HasOperation(waiting);
  EXPECT_EQ(Run({"jobs", "--no-color"}), 0);
  EXPECT_THAT(out, HasSubstr("operations/000660d3ff58db01  RUNNING    0/56 trials"));
  waiting.mutable_progress()->set_phase(v1::OperationProgress::PHASE_PLAY_OFF);
  fake.HasOperation(waiting);
  EXPECT_EQ(Run({"jobs", "--no-color"}), 0);
  EXPECT_THAT(out, HasSubstr("operations/000660d3ff58db01  RUNNING    play-off"));
}

TEST_F(CliTest, ProblemsOfASweepSayWhichCardHasThem) {
  v1::Operation part;
  part.set_name("operations/7.1");
  part.set_parent("operations/7");
  part.set_title("sweep nightly: b1.h1.q205.d64.f16");
  part.set_state(v1::Operation::STATE_RUNNING);
  part.mutable_progress()->set_device_id("cuda:1");
  fake.HasOperation(part);
  for (const char* sweep : {"operations/7", "7"}) {
    EXPECT_EQ(Run({"jobs", "--sweep", sweep}), 0);
    EXPECT_THAT(out, HasSubstr("sweep nightly: b1.h1.q205.d64.f16 on cuda:1"));
  }
  EXPECT_EQ(Run({"jobs", "--sweep", "99", "--format=json"}), 3) << "there is no such sweep";
}

TEST_F(CliTest, ASweepSaysHowManyOfItsProblemsFailed) {
  v1::Operation sweep;
  sweep.set_name("operations/70");
  sweep.set_title("nightly");
  sweep.set_state(v1::Operation::STATE_SUCCEEDED);
  sweep.mutable_progress()->set_problems_done(2);
  sweep.mutable_progress()->set_problems_total(2);
  sweep.mutable_progress()->set_message("1 of 2 problems FAILED");
  fake.HasOperation(sweep);
  EXPECT_EQ(Run({"jobs"}), 0);
  EXPECT_THAT(out, HasSubstr("nightly: 1 of 2 problems FAILED"));
  EXPECT_EQ(Run({"jobs", "--format=json"}), 0);
  EXPECT_THAT(out, HasSubstr("\"message\":\"1 of 2 problems FAILED\""));
  sweep.mutable_progress()->set_message("done");
  fake.HasOperation(sweep);
  EXPECT_EQ(Run({"jobs"}), 0);
  EXPECT_THAT(out, ::testing::ContainsRegex("nightly *\n"));
}

TEST_F(CliTest, ColoursAreOnATerminalOnlyAndCanBeSwitchedOff) {
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("\033")));
  terminal = true;
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, HasSubstr("\033[31mWRONG_RESULT"));
  EXPECT_EQ(Run({"trials", "--no-color"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("\033")));
  variables["NO_COLOR"] = "1";
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("\033")));
}

TEST_F(CliTest, ColoursHeedWhatTheTerminalCanAndWhatIsForced) {
  terminal = true;
  variables["TERM"] = "dumb";
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("\033")));
  fake.EndsWith(attune::testing::SucceededTuning());
  EXPECT_EQ(Run({"tune", problem}), 0);
  EXPECT_THAT(err, Not(HasSubstr("\033"))) << "nor is progress drawn over";
  terminal = false;
  variables["CLICOLOR_FORCE"] = "0";
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("\033")));
  variables["CLICOLOR_FORCE"] = "1";
  EXPECT_EQ(Run({"trials"}), 0);
  EXPECT_THAT(out, HasSubstr("\033[31mWRONG_RESULT"));
}

}  // namespace
}  // namespace attune::cli
