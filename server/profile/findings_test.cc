#include "server/profile/findings.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::profile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kMemcheck = v1::SANITIZER_TOOL_MEMCHECK;
constexpr auto kRacecheck = v1::SANITIZER_TOOL_RACECHECK;

constexpr char kClean[] = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";
constexpr char kInvalid[] =
    "========= COMPUTE-SANITIZER\n"
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at attention+0x60\n"
    "=========     by thread (31,0,0) in block (7,0,0)\n"
    "=========     Address 0x7f0000001000 is out of bounds\n"
    "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
    "=========         Host Frame: cuLaunchKernelEx [0x2a] in libcuda.so\n"
    "=========\n"
    "========= Invalid __global__ read of size 2 bytes\n"
    "=========     at attention+0x90\n"
    "=========\n"
    "========= ERROR SUMMARY: 2 errors\n";
constexpr char kRace[] =
    "========= COMPUTE-SANITIZER\n"
    "========= Warning: Race reported between Write access at attention+0x10\n"
    "=========     and Read access at attention+0x20 [8 hazards]\n"
    "=========\n"
    "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n";

TEST(Findings, CleanIsASummaryOfNoErrorsAndSuccess) {
  const v1::SanitizerRun run = RunOf(kMemcheck, kClean, 0);
  EXPECT_EQ(run.errors(), 0);
  EXPECT_EQ(run.incomplete(), "");
  EXPECT_THAT(run.findings(), IsEmpty());
}

TEST(Findings, EachIsALineWithoutTheHostsStack) {
  const v1::SanitizerRun run = RunOf(kMemcheck, kInvalid, 99);
  EXPECT_EQ(run.errors(), 2);
  EXPECT_THAT(run.findings(),
              ElementsAre("Invalid __global__ write of size 4 bytes; at attention+0x60; by thread (31,0,0) in block "
                          "(7,0,0); Address 0x7f0000001000 is out of bounds",
                          "Invalid __global__ read of size 2 bytes; at attention+0x90"));
}

TEST(Findings, WarningsOfRacecheckAreHazardsToo) {
  const v1::SanitizerRun run = RunOf(kRacecheck, kRace, 99);
  EXPECT_EQ(run.errors(), 1);
  EXPECT_THAT(run.findings(), ElementsAre(HasSubstr("and Read access at attention+0x20 [8 hazards]")));
}

TEST(Findings, AreAFewOfMany) {
  std::string output;
  for (int i = 0; i < 20; ++i)
    absl::StrAppend(&output, "========= Invalid read ", i, std::string(1000, 'x'), "\n=========\n");
  absl::StrAppend(&output, "========= ERROR SUMMARY: 20 errors\n");
  const v1::SanitizerRun run = RunOf(kMemcheck, output, 99);
  EXPECT_EQ(run.errors(), 20);
  EXPECT_EQ(run.findings_size(), 5);
  EXPECT_LE(run.findings(0).size(), 403U);
}

TEST(Findings, NoSummaryIsNoResult) {
  EXPECT_THAT(RunOf(kRacecheck, kClean, 0).incomplete(), HasSubstr("racecheck came to no result"));
  const v1::SanitizerRun run = RunOf(kMemcheck, "attune-worker --role=launch: cuInit: CUDA_ERROR_NO_DEVICE\n", 1);
  EXPECT_EQ(run.incomplete(),
            "memcheck came to no result, exit code 1: attune-worker --role=launch: cuInit: CUDA_ERROR_NO_DEVICE");
}

TEST(Findings, AProgramThatFailsByItselfIsNoCleanRun) {
  EXPECT_THAT(RunOf(kMemcheck, absl::StrCat("attune-worker: failed\n", kClean), 1).incomplete(),
              HasSubstr("exit code 1"));
  EXPECT_EQ(RunOf(kMemcheck, kInvalid, 1).errors(), 2) << "but what was found counts";
}

TEST(Findings, EachToolIsAskedByItsName) {
  EXPECT_THAT(SanitizerOptions(kMemcheck), Contains("--padding=4096"));
  EXPECT_THAT(SanitizerOptions(kMemcheck), Contains("--report-api-errors=no"));
  EXPECT_THAT(SanitizerOptions(kRacecheck), Contains("--tool=racecheck"));
}

}  // namespace
}  // namespace attune::profile
