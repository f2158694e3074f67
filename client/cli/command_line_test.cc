// The command line itself: help, options and their mistakes, exit codes, standard input, completion.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/cli.h"
#include "client/cli/testing/fake_world.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CliTest, EveryCommandsHelpHasAnExampleOfItself) {
  for (const Command& command : Commands()) {
    EXPECT_EQ(Run({std::string(command.name), "--help"}), 0) << command.name;
    EXPECT_THAT(out, HasSubstr(absl::StrCat("Examples:\n  attune"))) << command.name;
    EXPECT_THAT(std::string(command.examples), HasSubstr(absl::StrCat(" ", command.name))) << command.name;
    EXPECT_THAT(out, HasSubstr("--server")) << command.name;
  }
}

TEST_F(CliTest, HelpFitsEightyColumns) {
  std::vector<std::vector<std::string>> lines = {{"--help"}};
  for (const Command& command : Commands()) lines.push_back({std::string(command.name), "--help"});
  for (const std::vector<std::string>& line : lines) {
    EXPECT_EQ(Run(line), 0);
    for (const absl::string_view printed : absl::StrSplit(out, '\n')) {
      EXPECT_LE(DisplayWidth(printed), 80u) << line.front() << ": " << printed;
    }
  }
}

TEST_F(CliTest, HelpIsACommandToo) {
  EXPECT_EQ(Run({"--help"}), 0);
  const std::string all = out;
  EXPECT_EQ(Run({"help"}), 0);
  EXPECT_EQ(out, all);
  EXPECT_EQ(Run({"tune", "--help"}), 0);
  const std::string of_tune = out;
  EXPECT_EQ(Run({"help", "tune"}), 0);
  EXPECT_EQ(out, of_tune);
  for (const std::vector<std::string>& line : {std::vector<std::string>{"help", "dance"}, {"dance", "--help"}}) {
    EXPECT_EQ(Run(line), 2);
    EXPECT_EQ(err, "attune: 'dance' is not a command (see attune --help)\n");
  }
  EXPECT_EQ(Run({"help", "tune", "best"}), 2);
  EXPECT_EQ(err, "attune: not expected: best (see attune help --help)\n");
}

TEST_F(CliTest, NamesAMisspeltOptionBesideWhatIsMissing) {
  EXPECT_EQ(Run({"tune", "--strategie=random"}), 2);
  EXPECT_EQ(err, "attune: problem is required; not expected: --strategie=random (see attune tune --help)\n");
}

TEST_F(CliTest, HelpListsEveryCommand) {
  EXPECT_EQ(Run({"--help"}), 0);
  for (const Command& command : Commands()) EXPECT_THAT(out, HasSubstr(absl::StrCat("\n  ", command.name, " ")));
}

TEST_F(CliTest, AnErrorIsOneLineAndNothingElse) {
  for (const std::vector<std::string>& line : {std::vector<std::string>{},
                                               {"dance"},
                                               {"best"},
                                               {"best", "b2"},
                                               {"best", "b1.h1.q1.d64.f16"},
                                               {"best", problem, "--format", "xml"},
                                               {"trials", "--limit", "-1"},
                                               {"trials", "trials/9"},
                                               {"watch", "9"}}) {
    EXPECT_NE(Run(line), 0);
    EXPECT_EQ(out, "");
    EXPECT_THAT(err, StartsWith("attune: "));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  }
}

TEST_F(CliTest, AnErrorIsShortAndPrintableWhateverWasTyped) {
  EXPECT_EQ(Run({std::string(120000, 'x')}), 2);
  EXPECT_LT(err.size(), 200u);
  EXPECT_EQ(Run({"best", problem, std::string(120000, 'x')}), 2);
  EXPECT_LT(err.size(), 1100u);
  EXPECT_EQ(Run({"best", "b1.\x1b[31m\xff"}), 2);
  EXPECT_THAT(err, HasSubstr("'\\x1b[31m\\xff' is not known"));
  EXPECT_THAT(err, Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, ABadProblemCostsNoCall) {
  EXPECT_EQ(Run({"best", "b2.h8.q512.d64.f32"}), 2);
  EXPECT_THAT(err, HasSubstr("'f32' is not known"));
  EXPECT_EQ(fake.calls("GetBest"), 0);
}

TEST_F(CliTest, ExitCodesTellErrorsApart) {
  EXPECT_EQ(Run({"best", problem}), 0);
  EXPECT_EQ(Run({"dance"}), 2);
  EXPECT_THAT(err, HasSubstr("'dance' is not a command"));
  EXPECT_EQ(Run({"best", "b1.h1.q1.d64.f16"}), 3);
  fake.FailNext(1, {grpc::StatusCode::INTERNAL, "broken\nin two"});
  EXPECT_EQ(Run({"best", problem}), 1);
  EXPECT_EQ(err, "attune: broken; in two\n");
  server.reset();
  EXPECT_EQ(Run({"devices"}), 4);
  EXPECT_THAT(err, HasSubstr("--server or ATTUNE_SERVER says where"));
}

TEST_F(CliTest, TheServerOptionGoesBeforeTheVariable) {
  variables["ATTUNE_SERVER"] = "nonsense";
  EXPECT_EQ(Run({"devices"}), 2);
  EXPECT_EQ(Run({"devices", "--server", server->address()}), 0);
  EXPECT_EQ(Run({"--server", server->address(), "devices"}), 0);
}

TEST_F(CliTest, AWrongOptionsValueIsNamedOnceWithWhatIsAllowed) {
  EXPECT_EQ(Run({"tune", problem, "--max-trials", "-5"}), 2);
  EXPECT_EQ(err, "attune: --max-trials is -5; allowed: integers >= 0 (see attune tune --help)\n");
  EXPECT_EQ(Run({"tune", problem, "--strategy", "genetic"}), 2);
  EXPECT_EQ(
      err,
      "attune: --strategy is 'genetic'; allowed: exhaustive, random, guided, evolution (see attune tune --help)\n");
}

TEST_F(CliTest, AWrongCommandLineNamesTheHelpOfItsCommand) {
  EXPECT_EQ(Run({"--policy", "warm", "best", problem}), 2);
  EXPECT_EQ(err, "attune: --policy is 'warm'; allowed: hot, l2-warm, cold (see attune best --help)\n");
  EXPECT_EQ(Run({"frobnicate"}), 2);
  EXPECT_EQ(err, "attune: 'frobnicate' is not a command (see attune --help)\n");
  EXPECT_EQ(Run({"--format=json", "frobnicate"}), 2);
  EXPECT_THAT(err, HasSubstr("\"message\":\"'frobnicate' is not a command (see attune --help)\""));
  EXPECT_EQ(Run({"--device", "l4", "frobnicate"}), 2);
  EXPECT_EQ(err, "attune: 'frobnicate' is not a command (see attune --help)\n");
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(err, "attune: a command is missing (see attune --help)\n");
}

TEST_F(CliTest, ANumberThatIsNoneIsNamedWithWhatIsAllowed) {
  for (const std::string option : {"--max-trials", "--seed"}) {
    for (const char* wrong : {"-1", "x", "1.5", "99999999999999999999"}) {
      EXPECT_EQ(Run({"tune", problem, option, wrong}), 2);
      EXPECT_EQ(err,
                absl::StrCat("attune: ", option, " is ", wrong, "; allowed: integers >= 0 (see attune tune --help)\n"));
    }
  }
  EXPECT_EQ(Run({"tune", problem, "--detach", "--seed", "18446744073709551615"}), 0);
  EXPECT_EQ(fake.last_tune().strategy().seed(), 18446744073709551615u);
}

TEST_F(CliTest, ADurationNeedsItsUnit) {
  EXPECT_EQ(Run({"tune", problem, "--max-time", "5"}), 2);
  EXPECT_THAT(err, StartsWith("attune: --max-time is '5'; allowed: durations above 0 with their unit, as 30s"));
  EXPECT_EQ(Run({"devices", "--timeout", "3"}), 2);
  EXPECT_THAT(err, StartsWith("attune: --timeout is '3'; "));
}

TEST_F(CliTest, ManyProblemsComeFromStandardInput) {
  piped = absl::StrCat("# two shapes\n", problem, "\n\n  b1.h1.q1.d64.f16\n");
  EXPECT_EQ(Run({"best", "-"}), 3) << "the second has no answer";
  EXPECT_THAT(out, HasSubstr(absl::StrCat(problem, "  EXACT         41.20  attention_wmma")));
  EXPECT_THAT(err, StartsWith("attune: b1.h1.q1.d64.f16: an answer is not known"));
  EXPECT_EQ(Run({"space", "-"}), 0);
  EXPECT_THAT(out, HasSubstr("b1.h1.q1.d64.f16:\n"));
  EXPECT_EQ(Run({"preflight", "-", "--format=json"}), 8);
  EXPECT_EQ(JsonLines().size(), 2u);
  EXPECT_EQ(Run({"preflight", "-"}), 8);
  EXPECT_THAT(out, HasSubstr("already tried\n\nb1.h1.q1.d64.f16 on "));
  EXPECT_EQ(Run({"best", "-", "--artifact", "file"}), 2);
}

TEST_F(CliTest, AWrongLineOfStandardInputStartsNothing) {
  piped = absl::StrCat(problem, "\nb1.h1\n");
  EXPECT_EQ(Run({"tune", "-"}), 2);
  EXPECT_THAT(err, HasSubstr("standard input, line 2: "));
  EXPECT_EQ(fake.calls("Tune"), 0);
  piped = "\n";
  EXPECT_EQ(Run({"best", "-"}), 2);
  EXPECT_THAT(err, HasSubstr("standard input has no problem"));
}

TEST_F(CliTest, CompletionKnowsEveryCommandAndEveryOption) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    ASSERT_EQ(Run({"completion", shell}), 0);
    const std::string script = out;
    for (const Command& command : Commands()) {
      EXPECT_THAT(script, HasSubstr(std::string(command.name))) << shell;
    }
    for (const std::string option : {"report-md", "max-trials", "no-color", "artifact"}) {
      EXPECT_THAT(script, HasSubstr(option)) << shell;
    }
    EXPECT_THAT(script, HasSubstr("exhaustive random")) << shell << " lacks the values of --strategy";
  }
  EXPECT_EQ(Run({"completion", "tcsh"}), 2);
}

TEST_F(CliTest, AnErrorIsAnObjectWhereJsonWasAskedFor) {
  EXPECT_EQ(Run({"cancel", "99", "--format=json"}), 3);
  EXPECT_EQ(out, "");
  const Json unknown = Json::parse(err);
  EXPECT_EQ(unknown["type"], "error");
  EXPECT_EQ(unknown["error"]["code"], "NOT_FOUND");
  EXPECT_EQ(unknown["error"]["exit_code"], 3);
  fake.FailNext(1, attune::testing::RichError(grpc::StatusCode::FAILED_PRECONDITION, "no family", "INFEASIBLE"));
  EXPECT_EQ(Run({"tune", problem, "--format", "json"}), 8);
  EXPECT_EQ(Json::parse(err)["error"]["reason"], "INFEASIBLE");
  EXPECT_EQ(Run({"tune", problem, "--max-trials", "x", "--format=json"}), 2);
  EXPECT_THAT(Json::parse(err)["error"]["message"].get<std::string>(), HasSubstr("--max-trials is x"));
}

TEST_F(CliTest, VersionNamesBothSides) {
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(out, ::testing::MatchesRegex("attune [0-9.]+\nattuned 0.1.0 at 127.0.0.1:[0-9]+\n"));
  EXPECT_EQ(Run({"--server", "unix:/nonexistent/s", "--version"}), 0);
  EXPECT_THAT(out, ::testing::MatchesRegex("attune [0-9.]+\n"));
  EXPECT_EQ(err, "attune: no server answers at unix:/nonexistent/s\n");
}

TEST_F(CliTest, EveryCommandAndExitCodeIsDocumented) {
  const auto document = ReadFile(ATTUNE_SOURCE_DIR "/docs/cli.md");
  ASSERT_TRUE(document.ok());
  for (const Command& command : Commands()) {
    EXPECT_THAT(*document, HasSubstr(absl::StrCat("| `", command.name))) << command.name;
  }
  for (const ExitCode code :
       {ExitCode::kOk, ExitCode::kError, ExitCode::kUsage, ExitCode::kNotFound, ExitCode::kUnreachable,
        ExitCode::kRegression, ExitCode::kOperationFailed, ExitCode::kOutOfTime, ExitCode::kInfeasible,
        ExitCode::kRegressionAndFailures, ExitCode::kInterrupted}) {
    EXPECT_THAT(*document, HasSubstr(absl::StrCat("\n| ", static_cast<int>(code), " |")));
  }
}

}  // namespace
}  // namespace attune::cli
