// The tools' way through real processes: stand-ins for ncu and compute-sanitizer run the real worker as those do, on
// the devices that this host has, or not at all.
#include "server/profile/tools.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"
#include "server/device/opencl/opencl_backend.h"
#include "server/store/testing/test_directory.h"

namespace attune::profile {
namespace {

using ::testing::HasSubstr;

// What ncu prints: two metrics, and a table with one kernel.
constexpr char kNcu[] = R"sh(
case "$*" in
  *--query-metrics*)
    echo "gpu__time_duration   Counter     nsecond      duration"
    echo "dram__throughput     Throughput  %            DRAM"
    echo asked >>)sh";
constexpr char kNcuTable[] = R"sh(
    exit 0;;
esac
echo "$*" >arguments
case "$*" in
  *dram__throughput*)
    echo "==ERROR== Failed to find metric dram__throughput.avg.pct_of_peak_sustained_elapsed"
    exit 1;;
esac
echo '==PROF== Connected to process 7'
echo '"ID","Kernel Name","gpu__time_duration.sum","launch__grid_size"'
echo '"","","ns",""'
echo '"0","attention(const __half *)","12,500","58"'
)sh";

class ToolsTest : public ::testing::Test {
 protected:
  ToolsTest() {
    options_.worker.executable = ATTUNE_WORKER;
    target_.device.set_id("cuda:0");
    *target_.job.mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d16.f16"));
    target_.job.mutable_candidate()->set_artifact("code");
    target_.job.mutable_candidate()->mutable_recipe()->add_launches()->set_entry("attention");
    target_.job.mutable_candidate()->mutable_recipe()->add_launches()->set_entry("reduce");
  }

  // A script that stands in for a tool; its path.
  std::string Script(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(directory_.path(), "/", name);
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(absl::StrCat(directory_.path(), "/", name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void UseNcu(const std::string& text) { options_.ncu = Script("ncu", text); }
  absl::StatusOr<v1::Profile> Profile() {
    return MakeTools(options_)->Profile(target_, absl::Minutes(2), stop_.get_token());
  }
  absl::StatusOr<v1::SanitizerRun> Memcheck(const std::string& text, absl::Duration most = absl::Minutes(2)) {
    options_.compute_sanitizer = Script("compute-sanitizer", text);
    return MakeTools(options_)->Sanitize(target_, v1::SANITIZER_TOOL_MEMCHECK, most, stop_.get_token());
  }

  const store::TestDirectory directory_;
  ToolOptions options_;
  Target target_;
  std::stop_source stop_;
};

TEST_F(ToolsTest, BringTheCountersOfWhatNcuCanFind) {
  UseNcu(absl::StrCat(kNcu, directory_.path(), "/listings", kNcuTable));
  const std::unique_ptr<Tools> tools = MakeTools(options_);
  for (int run = 0; run < 2; ++run) {
    const auto profile = tools->Profile(target_, absl::Minutes(2), stop_.get_token());
    ASSERT_TRUE(profile.ok()) << profile.status();
    ASSERT_EQ(profile->kernels_size(), 1);
    EXPECT_EQ(profile->kernels(0).entry(), "attention");
    EXPECT_EQ(profile->kernels(0).counters(0).name(), "duration_us");
    EXPECT_DOUBLE_EQ(profile->kernels(0).counters(0).value(), 12.5);
  }
  EXPECT_EQ(Read("listings"), "asked\n") << "what a device has is asked for once";
}

TEST_F(ToolsTest, AskForTheSecondRunOfTheRecipesKernelsAlone) {
  const std::string copy =
      absl::StrCat("cp arguments ", directory_.path(), "/arguments; cp job.binpb ", directory_.path(), "/job.binpb\n");
  UseNcu(absl::StrCat(kNcu, directory_.path(), "/listings", kNcuTable, copy));
  ASSERT_TRUE(Profile().ok());
  const std::string arguments = Read("arguments");
  EXPECT_THAT(arguments, HasSubstr("--kernel-name=regex:^(attention|reduce)$ --launch-skip=2 --launch-count=2 "));
  EXPECT_THAT(arguments, HasSubstr("attune-worker --role=launch --device=cuda:0 --job="));
  worker::v1::LaunchJob job;
  ASSERT_TRUE(job.ParseFromString(Read("job.binpb")));
  EXPECT_EQ(job.runs(), 2);
  EXPECT_EQ(job.candidate().artifact(), "code");
}

TEST_F(ToolsTest, LeaveNoFilesBehind) {
  UseNcu(absl::StrCat(kNcu, directory_.path(), "/listings", kNcuTable, "pwd >", directory_.path(), "/where\n"));
  ASSERT_TRUE(Profile().ok());
  std::string where = Read("where");
  where.pop_back();
  EXPECT_FALSE(std::filesystem::exists(where)) << where;
}

TEST_F(ToolsTest, SayWhichSettingKeepsCountersAway) {
  UseNcu(
      "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
      "Counters'");
  const absl::Status status = Profile().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

// The stand-in runs the worker as ncu would; there is no such device here.
TEST_F(ToolsTest, SayWhatTheWorkerSaid) {
  target_.device.set_id("cuda:99");
  const std::string run =
      "for last; do :; done; while [ $# -gt 1 ] && [ \"${1%attune-worker}\" = \"$1\" ]; do shift; done; "
      "\"$@\"; exit 1\n";
  UseNcu(absl::StrCat("case \"$*\" in *--query*) echo 'gpu__time_duration Counter'; exit 0;; esac\n", run));
  EXPECT_THAT(
      std::string(Profile().status().message()),
      HasSubstr("exit code 1: attune-worker --role=launch: --device is 'cuda:99', which this host does not have"));
}

TEST_F(ToolsTest, BringWhatASanitizerFinds) {
  auto run =
      Memcheck(absl::StrCat("echo \"$*\" >", directory_.path(),
                            "/arguments\nprintf '========= Invalid __global__ read of size 2 bytes\\n=========     at "
                            "attention+0x60\\n========= ERROR SUMMARY: 1 error\\n'; exit 99\n"));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->errors(), 1);
  EXPECT_EQ(run->findings(0), "Invalid __global__ read of size 2 bytes; at attention+0x60");
  EXPECT_THAT(Read("arguments"), ::testing::StartsWith("--tool=memcheck --error-exitcode=99 "));
  run = Memcheck("echo '========= ERROR SUMMARY: 0 errors'\n");
  EXPECT_EQ(run->errors(), 0);
  EXPECT_EQ(run->incomplete(), "");
}

// A stand-in that runs what it is given, as compute-sanitizer does, on this host's CPU.
TEST_F(ToolsTest, TheWorkerLaunchesTheCodeOnTheDevice) {
  const std::unique_ptr<device::Backend> backend = device::MakeOpenClBackend();
  if (!backend->Status().available()) GTEST_SKIP() << "no OpenCL device here: " << backend->Status().reason();
  target_.device = backend->Devices().front();
  worker::v1::CompileRequest request;
  request.set_backend(v1::BACKEND_OPENCL);
  request.set_target(target_.device.target());
  request.add_sources()->set_path("kernel.cl");
  request.mutable_sources(0)->set_text(
      "kernel void said(global ushort* q, global ushort* o) { o[0] = q[0]; printf(\"launched %d\\n\", q[0] != 0); }");
  request.add_entries("said");
  const auto compiled = (*backend->OpenCompiler())->Compile(request);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_EQ(compiled->verdict(), v1::VERDICT_OK) << compiled->log();
  worker::v1::Candidate& candidate = *target_.job.mutable_candidate();
  candidate.set_artifact(compiled->artifact());
  candidate.clear_recipe();
  v1::KernelLaunch& launch = *candidate.mutable_recipe()->add_launches();
  launch.set_entry("said");
  launch.mutable_grid()->set_x(1);
  launch.mutable_block()->set_x(1);
  for (const v1::BufferRole role : {v1::BUFFER_ROLE_Q, v1::BUFFER_ROLE_O}) {
    launch.add_args()->mutable_buffer()->set_role(role);
  }
  const std::string run = absl::StrCat("while [ \"${1%attune-worker}\" = \"$1\" ]; do shift; done\n\"$@\" >",
                                       directory_.path(), "/said 2>&1 || exit $?\n");
  const auto found = Memcheck(absl::StrCat(run, "echo '========= ERROR SUMMARY: 0 errors'\n"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->incomplete(), "") << Read("said");
  EXPECT_THAT(Read("said"), HasSubstr("launched 1\n"));
}

TEST_F(ToolsTest, EndWhatIsLate) {
  EXPECT_EQ(Memcheck("sleep 600\n", absl::Seconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ToolsTest, NameTheFlagWhereThereIsNone) {
  options_.ncu = "/nowhere/ncu";
  EXPECT_EQ(MakeTools(options_)->CheckProfiler().message(),
            "this host's daemon has --ncu=/nowhere/ncu, which is no executable file");
  options_.compute_sanitizer = directory_.path();
  EXPECT_THAT(std::string(MakeTools(options_)->CheckSanitizer().message()), HasSubstr("--compute_sanitizer="));
}

TEST_F(ToolsTest, AreLookedForInThePathAndTheToolkit) {
  const std::string path = getenv("PATH") == nullptr ? "" : getenv("PATH");
  Script("compute-sanitizer", "exit 0\n");
  setenv("PATH", absl::StrCat("/nowhere:", directory_.path(), ":", path).c_str(), 1);
  EXPECT_TRUE(MakeTools(options_)->CheckSanitizer().ok());
  setenv("PATH", "/nowhere", 1);
  setenv("CUDA_HOME", "/nowhere", 1);
  if (!std::filesystem::exists("/usr/local/cuda/bin/ncu")) {
    EXPECT_THAT(std::string(MakeTools(options_)->CheckProfiler().message()),
                HasSubstr("this host has no ncu: it is neither in the daemon's PATH nor in /usr/local/cuda/bin"));
  }
  setenv("PATH", path.c_str(), 1);
  unsetenv("CUDA_HOME");
}

}  // namespace
}  // namespace attune::profile
