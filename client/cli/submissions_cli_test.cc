// Commands of authors: submit, submissions, adopt, withdraw, summary --loop, new-kernel.
#include <filesystem>

#include "client/cli/testing/fake_world.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SubmissionsCliTest : public CliTest {
 protected:
  SubmissionsCliTest() { std::filesystem::remove_all(directory_); }
  ~SubmissionsCliTest() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = ::testing::TempDir() + "/attune_submissions";
};

TEST_F(SubmissionsCliTest, SubmitSendsTheFilesAndShowsWhatWasKept) {
  ASSERT_EQ(Run({"new-kernel", directory_}), 0) << err;
  EXPECT_THAT(out, HasSubstr("family.textproto"));
  EXPECT_THAT(err, HasSubstr("attune submit"));
  fake.EndsWith(attune::testing::EndedSubmission(v1::SubmitResult::DECISION_KEEP));
  EXPECT_EQ(Run({"submit", directory_, "--problem", problem, "--problem", "b1.h1.q128.d64.f16", "--hypothesis",
                 "larger tiles", "--loop", "tiles", "--base", "6", "--sanitize-every", "3"}),
            0)
      << err;
  EXPECT_THAT(out, HasSubstr("KEEP  submissions/7  1.250 times as fast"));
  EXPECT_THAT(out, HasSubstr("warning  ctas: 2 CTAs on 58 SMs; split the keys"));
  EXPECT_THAT(out, HasSubstr("incumbents/3"));
  const v1::SubmitRequest request = fake.last_submit();
  ASSERT_EQ(request.files_size(), 2);
  EXPECT_EQ(request.files(0).path(), "attention.cl");
  EXPECT_EQ(request.files(1).path(), "family.textproto");
  EXPECT_EQ(request.problems_size(), 2);
  EXPECT_EQ(request.hypothesis(), "larger tiles");
  EXPECT_EQ(request.loop(), "tiles");
  EXPECT_EQ(request.base(), "submissions/6");
  EXPECT_EQ(request.sanitize_every(), 3);
  EXPECT_EQ(request.policy(), v1::POLICY_HOT);
  EXPECT_EQ(request.device_id(), "") << "which one is the kernel's matter";
}

TEST_F(SubmissionsCliTest, ARevertHasAnExitCodeOfItsOwnAndSaysWhere) {
  ASSERT_EQ(Run({"new-kernel", directory_}), 0);
  fake.EndsWith(attune::testing::EndedSubmission(v1::SubmitResult::DECISION_REVERT));
  EXPECT_EQ(Run({"submit", directory_, "--problem", problem}), 5);
  EXPECT_FALSE(fake.last_submit().has_sanitize_every()) << "the server's default";
  EXPECT_THAT(out, HasSubstr("mine.cu:12: identifier \"x\" is undefined"));
  EXPECT_THAT(out, HasSubstr("REVERT  submissions/7"));
  EXPECT_EQ(Run({"submit", directory_, "--problem", problem, "--format=json"}), 5);
  const Json json = JsonLines().back();
  EXPECT_EQ(json["type"], "submit_result");
  EXPECT_EQ(json["decision"], "REVERT");
  EXPECT_EQ(json["rows"][0]["diagnostics"][0]["line"], 12);
  EXPECT_EQ(json["rows"][0]["speedup"], nullptr);
}

TEST_F(SubmissionsCliTest, SubmitSendsNothingThatIsWrongHere) {
  EXPECT_EQ(Run({"submit", directory_ + "/none", "--problem", problem}), 3) << err;
  ASSERT_EQ(Run({"new-kernel", directory_}), 0);
  EXPECT_EQ(Run({"submit", directory_}), 2);
  EXPECT_THAT(err, HasSubstr("--problem is required"));
  EXPECT_EQ(Run({"submit", directory_, "--problem", "b1"}), 2);
  EXPECT_EQ(fake.calls("Submit"), 0);
}

TEST_F(SubmissionsCliTest, SubmissionsListsThemAndFetchesTheFilesOfOne) {
  EXPECT_EQ(Run({"submissions", "--loop", "tiles"}), 0);
  EXPECT_THAT(out, HasSubstr("submissions/2"));
  EXPECT_THAT(out, HasSubstr("submissions/1"));
  EXPECT_THAT(out, HasSubstr("REVERT"));
  EXPECT_EQ(Run({"submissions", "--loop", "none"}), 0);
  EXPECT_THAT(err, HasSubstr("No submissions"));
  EXPECT_EQ(Run({"submissions", "1", "--out", directory_}), 0) << err;
  EXPECT_THAT(out, HasSubstr("tiles, iteration 1"));
  EXPECT_EQ(ReadFile(directory_ + "/mine.cu").value(), "// tile 64\nint same;\n");
  EXPECT_EQ(Run({"submissions", "9"}), 3);
  EXPECT_EQ(Run({"submissions", "--out", directory_}), 2);
  EXPECT_EQ(Run({"submissions", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["state"], "private");
}

TEST_F(SubmissionsCliTest, AdoptAndWithdrawSayWhatTheyDid) {
  EXPECT_EQ(Run({"adopt", "7"}), 0);
  EXPECT_THAT(out, HasSubstr("adopted: submissions/7, kernel family submitted_"));
  EXPECT_EQ(Run({"withdraw", "submissions/7", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["state"], "withdrawn");
}

TEST_F(SubmissionsCliTest, SummaryOfALoopShowsEachIterationWithItsChange) {
  EXPECT_EQ(Run({"summary", "--loop", "tiles", "--markdown", directory_ + ".md"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("+1 -1"));
  EXPECT_THAT(out, ContainsRegex("-+\\*-+")) << "its time on the scale of all";
  EXPECT_LT(out.find("larger tiles"), out.find("fewer | barriers"));
  const std::string markdown = ReadFile(directory_ + ".md").value();
  EXPECT_THAT(markdown, HasSubstr("| 2 | fewer \\| barriers |"));
  EXPECT_THAT(markdown, ContainsRegex("## Times of b2.h8.q512.d64.f16\n\n```\n.*\n +1 .*-\\*-+ +KEEP\n"));
  EXPECT_THAT(markdown, HasSubstr("-// tile 64\n+// tile 128\n int same;\n"));
  std::filesystem::remove(directory_ + ".md");
  EXPECT_EQ(Run({"summary", "--loop", "tiles", "--format=json"}), 0);
  ASSERT_EQ(JsonLines().size(), 2U);
  EXPECT_EQ(JsonLines()[0]["diff_against"], nullptr);
  EXPECT_EQ(JsonLines()[1]["diff_against"], "submissions/1");
  EXPECT_EQ(JsonLines()[1]["lines_added"], 1);
  EXPECT_EQ(Run({"summary", "--loop", "none"}), 3);
  EXPECT_EQ(Run({"summary", "--markdown", "x"}), 2) << "of a loop alone";
}

TEST_F(SubmissionsCliTest, SummaryOfALoopShowsCountersWhereThereAreSome) {
  EXPECT_EQ(Run({"summary", "--loop", "tiles"}), 0) << err;
  EXPECT_THAT(out, Not(HasSubstr("counters")));
  fake.HasProfiles();
  EXPECT_EQ(Run({"summary", "--loop", "tiles", "--markdown", directory_ + ".md"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("SM 62%, DRAM 91%"));
  EXPECT_THAT(ReadFile(directory_ + ".md").value(), HasSubstr("| SM 62%, DRAM 91% | KEEP |"));
  std::filesystem::remove(directory_ + ".md");
  EXPECT_EQ(Run({"summary", "--loop", "tiles", "--format=json"}), 0);
  EXPECT_EQ(JsonLines()[0]["result"]["rows"][0]["trial"]["profile"]["kernels"][0]["entry"], "attention");
}

TEST_F(SubmissionsCliTest, NewKernelOverwritesNothing) {
  EXPECT_EQ(Run({"new-kernel", directory_, "--backend", "cuda"}), 0);
  EXPECT_THAT(ReadFile(directory_ + "/attention.cu").value(), HasSubstr("extern \"C\" __global__"));
  EXPECT_NE(Run({"new-kernel", directory_, "--backend", "cuda"}), 0);
  EXPECT_THAT(err, HasSubstr("is there already"));
  EXPECT_EQ(Run({"new-kernel", directory_, "--backend", "metal"}), 2);
}

TEST_F(SubmissionsCliTest, NewKernelWritesEachTechniqueAsAStep) {
  EXPECT_EQ(Run({"new-kernel", directory_, "--backend", "cuda", "--step", "3"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("/tile.cuh"));
  EXPECT_THAT(err, HasSubstr("The next step, asynchronous copies, is --step 4"));
  EXPECT_THAT(ReadFile(directory_ + "/attention.cu").value(), HasSubstr("Step 3 of 4: tensor cores"));
  EXPECT_THAT(ReadFile(directory_ + "/instructions.cuh").value(), HasSubstr("mma.sync"));
  EXPECT_EQ(Run({"new-kernel", directory_ + "4", "--backend", "cuda", "--step", "4", "--format=json"}), 0) << err;
  EXPECT_EQ(JsonLines()[0]["technique"], "asynchronous copies");
  std::filesystem::remove_all(directory_ + "4");
}

TEST_F(SubmissionsCliTest, NewKernelKnowsItsSteps) {
  EXPECT_EQ(Run({"new-kernel", directory_, "--backend", "cuda", "--step", "5"}), 2);
  EXPECT_THAT(err, HasSubstr("--step is 5; allowed: 1 to 4"));
  EXPECT_EQ(Run({"new-kernel", directory_, "--step", "2"}), 2);
  EXPECT_THAT(err, HasSubstr("allowed: 1 for opencl"));
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

}  // namespace
}  // namespace attune::cli
