// The OpenCL families of tests/families misbehave as they say, and their good variants do not.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/opencl/attention_testing.h"
#include "tests/opencl/device_testing.h"
#include "tests/opencl/recipes.h"

namespace attune::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kProblem[] = "b1.h2.q67.kv65.d64.f16.lse";

class Adversarial : public ::testing::Test {
 protected:
  void SetUp() override {
    host_ = OpenHost();
    if (host_ == nullptr) GTEST_SKIP() << "this host has no OpenCL device (PoCL: package pocl-opencl-icd)";
    tensors_ = MakeTensors(problem_, Inputs::kNormal, /*seed=*/1);
    expected_ = HostAttention(problem_, tensors_);
  }

  worker::v1::CompileResponse CompileFamily(const std::string& family, const std::string& parameter) {
    absl::StatusOr<worker::v1::CompileResponse> compiled =
        Compile(*host_, {"tests/families/" + family + "/attention.cl", "tests/families/common/row_opencl.h"},
                {"-D" + parameter, "-DHEAD_DIM=64"}, {"attention"});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? *compiled : worker::v1::CompileResponse();
  }

  Outputs RunFamily(const std::string& family, const std::string& parameter, const RunOptions& options = {},
                    int64_t threads = 16) {
    const worker::v1::CompileResponse compiled = CompileFamily(family, parameter);
    EXPECT_EQ(compiled.verdict(), v1::VERDICT_OK) << family << ": " << compiled.log();
    absl::StatusOr<Outputs> outputs =
        RunAttention(*host_->device, compiled.artifact(), RowRecipe(problem_, threads), problem_, tensors_, options);
    EXPECT_TRUE(outputs.ok()) << family << ": " << outputs.status();
    return outputs.ok() ? *outputs : Outputs();
  }

  const Problem problem_ = *ParseProblem(kProblem);
  std::unique_ptr<Host> host_;
  Tensors tensors_;
  Result expected_;
};

TEST_F(Adversarial, GoodVariantsAreRight) {
  for (const char* family :
       {"hang_opencl", "crash_opencl", "out_of_bounds_opencl", "wrong_rows_opencl", "compile_error_opencl",
        "stale_output_opencl", "changes_inputs_opencl", "nondeterministic_opencl", "changes_inputs_timed_opencl",
        "recognizes_poison_opencl", "counts_runs_opencl", "late_write_opencl", "leaves_scratch_opencl",
        "keeps_output_opencl", "caches_results_opencl", "recognizes_pointers_opencl", "rarely_wrong_opencl",
        "nan_rows_opencl"}) {
    const Outputs outputs = RunFamily(family, "BAD=0");
    EXPECT_EQ(Difference(outputs.o, problem_, expected_), "") << family;
    EXPECT_EQ(Difference(outputs.lse, expected_.lse, 1e-4), "") << family;
    EXPECT_TRUE(outputs.red_zones_intact && outputs.inputs_unchanged) << family;
  }
}

TEST_F(Adversarial, OutOfBoundsIsRightInsideAndWritesOutside) {
  const Outputs outputs = RunFamily("out_of_bounds_opencl", "BAD=1");
  EXPECT_EQ(Difference(outputs.o, problem_, expected_), "");
  EXPECT_FALSE(outputs.red_zones_intact);
}

TEST_F(Adversarial, WrongRowsIsWrong) {
  EXPECT_THAT(Difference(RunFamily("wrong_rows_opencl", "BAD=1").o, problem_, expected_), HasSubstr("element"));
}

TEST_F(Adversarial, NanRowsIsWrong) {
  EXPECT_THAT(Difference(RunFamily("nan_rows_opencl", "BAD=1").o, problem_, expected_), HasSubstr("element"));
}

TEST_F(Adversarial, CompileErrorIsAResponseWithTheCompilersWords) {
  const worker::v1::CompileResponse compiled = CompileFamily("compile_error_opencl", "BAD=1");
  EXPECT_EQ(compiled.verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(compiled.log(), HasSubstr("compile_error_opencl/attention.cl:7"));
}

TEST_F(Adversarial, StaleOutputIsRightOnlyWhereItFindsNoNumber) {
  EXPECT_EQ(
      Difference(RunFamily("stale_output_opencl", "BAD=1", {.runs = 2, .fresh_output = false}).o, problem_, expected_),
      "");
  EXPECT_NE(Difference(RunFamily("stale_output_opencl", "BAD=1", {.output = std::byte{0x5a}}).o, problem_, expected_),
            "");
}

TEST_F(Adversarial, LateWriteIsRightInItsSecondRun) {
  EXPECT_NE(Difference(RunFamily("late_write_opencl", "BAD=1").o, problem_, expected_), "");
  EXPECT_EQ(Difference(RunFamily("late_write_opencl", "BAD=1", {.runs = 2}).o, problem_, expected_), "");
}

// Each is right in its first runs and leaves O as it finds it, NaN, in one after them.
TEST_F(Adversarial, CountsRunsComputesFourTimes) {
  EXPECT_EQ(Difference(RunFamily("counts_runs_opencl", "BAD=1", {.runs = 4}).o, problem_, expected_), "");
  EXPECT_NE(Difference(RunFamily("counts_runs_opencl", "BAD=1", {.runs = 5}).o, problem_, expected_), "");
}

TEST_F(Adversarial, KeepsOutputAndCachesResultsAreRightAsLongAsTheInputsAreTheSame) {
  for (const char* family : {"keeps_output_opencl", "caches_results_opencl"}) {
    for (const bool fresh_output : {false, true}) {
      const Outputs outputs = RunFamily(family, "BAD=1", {.runs = 3, .fresh_output = fresh_output});
      EXPECT_EQ(Difference(outputs.o, problem_, expected_), "") << family;
    }
  }
}

TEST_F(Adversarial, ChangesInputsIsRightAndChangesThem) {
  const Outputs outputs = RunFamily("changes_inputs_opencl", "BAD=1");
  EXPECT_EQ(Difference(outputs.o, problem_, expected_), "");
  EXPECT_FALSE(outputs.inputs_unchanged);
}

TEST_F(Adversarial, NondeterministicIsRightTwiceAndDiffers) {
  const Outputs once = RunFamily("nondeterministic_opencl", "BAD=1", {.runs = 1});
  const Outputs twice = RunFamily("nondeterministic_opencl", "BAD=1", {.runs = 2});
  EXPECT_EQ(Difference(once.o, problem_, expected_), "");
  EXPECT_EQ(Difference(twice.o, problem_, expected_), "");
  EXPECT_NE(once.o, twice.o);
}

TEST_F(Adversarial, CrashKillsItsProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(RunFamily("crash_opencl", "BAD=1"), "");
}

TEST_F(Adversarial, HangOutlastsItsDeadline) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const worker::v1::CompileResponse compiled = CompileFamily("hang_opencl", "BAD=1");
        alarm(2);  // far longer than the good variant takes
        (void)RunAttention(*host_->device, compiled.artifact(), RowRecipe(problem_, 16), problem_, tensors_);
        _exit(0);
      },
      ::testing::KilledBySignal(SIGALRM), "");
}

TEST_F(Adversarial, SlowableIsRightWithAndWithoutItsFile) {
  constexpr char kFile[] = "/tmp/attune-test-slow";
  for (int64_t threads : {8, 16}) {
    const std::string parameter = "THREADS=" + std::to_string(threads);
    EXPECT_EQ(Difference(RunFamily("slowable_opencl", parameter, {}, threads).o, problem_, expected_), "");
    std::ofstream(kFile).put('\n');
    EXPECT_EQ(Difference(RunFamily("slowable_opencl", parameter, {}, threads).o, problem_, expected_), "");
    std::remove(kFile);
  }
}

}  // namespace
}  // namespace attune::testing
