#include "server/device/cuda/resource_report.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace attune::device::cuda {
namespace {

// NVRTC 13.0's own words: kernels k2 and k1, and a function that k1 calls.
constexpr char kLog[] =
    "ptxas warning : Value of threads per SM for entry k1 is out of range. .minnctapersm will be ignored\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'k2' for 'sm_89'\n"
    "ptxas info    : Function properties for k2\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 16 registers, used 1 barriers, 800 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]\n"
    "ptxas info    : Compile time = 1.964 ms\n"
    "ptxas info    : Compiling entry function 'k1' for 'sm_89'\n"
    "ptxas info    : Function properties for k1\n"
    "ptxas         .     528 bytes stack frame, 260 bytes spill stores, 264 bytes spill loads\n"
    "ptxas info    : Used 64 registers, used 1 barriers, 528 bytes cumulative stack size, 364 bytes cmem[0]\n"
    "ptxas info    : Compile time = 33.696 ms\n";

// As nvcc's ptxas writes it.
constexpr char kOlderLog[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function '_Z1aPf' for 'sm_80'\n"
    "ptxas info    : Function properties for _Z1aPf\n"
    "    160 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
    "ptxas info    : Used 255 registers, 256 bytes smem, 372 bytes cmem[0]\n";

constexpr char kCalledFunction[] =
    "ptxas info    : Function properties for _Z6helperPfi\n"
    "ptxas         .     16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n";

TEST(ResourceReport, OfAnEmptyLogIsEmpty) {
  EXPECT_TRUE(ParseResourceReport("").empty());
  EXPECT_TRUE(ParseResourceReport("k.cu(1): warning #177-D: variable \"x\" was declared but never referenced").empty());
}

TEST(ResourceReport, HasEachKernelsOwnFigures) {
  const auto entries = ParseResourceReport(kLog);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name(), "k2");
  EXPECT_EQ(entries[0].registers(), 16);
  EXPECT_EQ(entries[0].static_shared_bytes(), 800);
  EXPECT_EQ(entries[0].spill_bytes(), 0);
  EXPECT_EQ(entries[0].stack_bytes(), 0);
  EXPECT_EQ(entries[1].name(), "k1");
  EXPECT_EQ(entries[1].registers(), 64);
  EXPECT_EQ(entries[1].static_shared_bytes(), 0);
  EXPECT_EQ(entries[1].spill_bytes(), 524);
  EXPECT_EQ(entries[1].stack_bytes(), 528);
}

// ptxas 13.0's own words of kernels `wgmma` and `plain`.
constexpr char kSerialized[] =
    "ptxas info    : (C7519) warpgroup.arrive is injected in around line 61 by compiler to allow use of registers in "
    "GMMA in function 'wgmma'\n"
    "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "insufficient "
    "register resources for the wgmma pipeline in the function 'wgmma'\n"
    "ptxas info    : (C7513) Potential Performance Loss: wgmma.mma_async instructions are serialized due to something "
    "else in the function 'wgmma'\n"
    "ptxas info    : Compiling entry function 'plain' for 'sm_90a'\n"
    "ptxas info    : Used 32 registers, used 0 barriers\n"
    "ptxas info    : Compiling entry function 'wgmma' for 'sm_90a'\n"
    "ptxas info    : Used 30 registers, used 0 barriers, 32768 bytes smem\n";

TEST(ResourceReport, SaysOfTheKernelItselfThatItsWgmmaIsSerialized) {
  const auto entries = ParseResourceReport(kSerialized);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].performance_loss(), "");
  EXPECT_EQ(entries[1].performance_loss(),
            "C7511: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma "
            "pipeline in the function 'wgmma'");
}

TEST(ResourceReport, ALossThatNamesNoKernelIsEveryKernels) {
  const auto entries = ParseResourceReport(
      absl::StrCat("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
                   "register count at entry.\n",
                   kLog));
  ASSERT_EQ(entries.size(), 2u);
  for (const auto& entry : entries) {
    EXPECT_EQ(entry.performance_loss(), "C7508: 'setmaxnreg' ignored; unable to determine register count at entry.");
  }
}

TEST(ResourceReport, ReadsTheOlderLayoutToo) {
  const auto entries = ParseResourceReport(kOlderLog);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name(), "_Z1aPf");
  EXPECT_EQ(entries[0].registers(), 255);
  EXPECT_EQ(entries[0].static_shared_bytes(), 256);
  EXPECT_EQ(entries[0].spill_bytes(), 20);
  EXPECT_EQ(entries[0].stack_bytes(), 160);
}

TEST(ResourceReport, CountsTheSpillsOfCalledFunctionsForEveryKernel) {
  const auto entries = ParseResourceReport(std::string(kLog) + kCalledFunction);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].spill_bytes(), 8);
  EXPECT_EQ(entries[1].spill_bytes(), 524 + 8);
  EXPECT_EQ(entries[1].stack_bytes(), 528 + 16);
}

// Found by fuzzing: what a kernel's author has the compiler say stands in the log, too.
TEST(ResourceReport, NumbersBeyondAllResourcesDoNotOverflow) {
  const std::string huge = "9223372036854775807";
  const auto entries = ParseResourceReport(absl::StrCat(kLog, "ptxas info    : Function properties for k9\n    ", huge,
                                                        " bytes stack frame, ", huge, " bytes spill stores, ", huge,
                                                        " bytes spill loads\n"));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_GT(entries[0].spill_bytes(), int64_t{1} << 40);
  EXPECT_LT(entries[0].spill_bytes(), int64_t{1} << 42);
  EXPECT_GE(entries[1].stack_bytes(), int64_t{1} << 40);
}

}  // namespace
}  // namespace attune::device::cuda
