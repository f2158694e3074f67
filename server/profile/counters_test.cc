#include "server/profile/counters.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::profile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kListing[] =
    "Device NVIDIA H200 (GH100)\n"
    "----------------------------------------------- ----------- ----------- -----------\n"
    "Metric Name                                     Metric Type Metric Unit Metric Description\n"
    "----------------------------------------------- ----------- ----------- -----------\n"
    "gpu__time_duration                              Counter     nsecond     incremental duration\n"
    "sm__pipe_tensor_cycles_active                   Counter     cycle       # of cycles\n"
    "dram__throughput                                Throughput  %           DRAM throughput\n"
    "smsp__average_warps_issue_stalled_barrier_per_issue_active Ratio  warps  stalls\n"
    "smsp__average_warps_issue_stalled_wait_per_issue_active Ratio  warps  stalls\n";

std::vector<Metric> Chosen() { return Choose(MetricsIn(kListing)); }

// As ncu prints it, for kListing's metrics.
constexpr char kOutput[] =
    "==PROF== Connected to process 7\n"
    "==PROF== Profiling \"attention_mma\": 0%....100% - 3 passes\n"
    "\"ID\",\"Kernel Name\",\"launch__registers_per_thread\",\"gpu__time_duration.sum\","
    "\"dram__throughput.avg.pct_of_peak_sustained_elapsed\","
    "\"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio\"\n"
    "\"\",\"\",\"register/thread\",\"ns\",\"%\",\"warp\",\"warp\"\n"
    "\"0\",\"attention_mma(const __half *, \"\"x\"\")\",\"255\",\"1,380,000\",\"12.5\",\"1\",\"3\"\r\n"
    "\"1\",\"attention_mma_combine\",\"32\",\"2000\",\"80\",\"0\",\"n/a\"\n"
    "\"2\",\"attention_mma_combine\",\"32\",\"9000\",\"80\",\"0\",\"0\"\n";

double CounterOf(const v1::KernelProfile& kernel, const std::string& name) {
  for (const v1::Counter& counter : kernel.counters()) {
    if (counter.name() == name) return counter.value();
  }
  return -1;
}

TEST(Counters, OnlyWhatTheDeviceHasIsAskedFor) {
  std::vector<std::string> names;
  for (const Metric& metric : Chosen()) names.push_back(metric.name);
  EXPECT_THAT(names, Contains("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"));
  EXPECT_THAT(names, Contains("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"));
  EXPECT_THAT(names, Contains("launch__grid_size"));
  EXPECT_EQ(names.size(), 7U) << "no other metric";
}

TEST(Counters, ALineIsAKernelInItsUnits) {
  const auto kernels = KernelsIn(kOutput, Chosen());
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 2U) << "the first of each entry, and no line of units";
  const v1::KernelProfile& kernel = kernels->front();
  EXPECT_EQ(kernel.entry(), "attention_mma");
  EXPECT_DOUBLE_EQ(CounterOf(kernel, "duration_us"), 1380);
  EXPECT_DOUBLE_EQ(CounterOf(kernel, "dram_throughput"), 0.125);
  EXPECT_DOUBLE_EQ(CounterOf(kernel, "registers"), 255);
  EXPECT_EQ(CounterOf(kernel, "ctas"), -1) << "it is not in the table";
  EXPECT_DOUBLE_EQ(CounterOf(kernels->back(), "duration_us"), 2);
}

TEST(Counters, StallsAreSharesOfTheirSumTheLargestFirst) {
  const auto kernels = KernelsIn(kOutput, Chosen());
  ASSERT_TRUE(kernels.ok());
  std::vector<std::pair<std::string, double>> stalls;
  for (const v1::Stall& stall : kernels->front().stalls()) stalls.emplace_back(stall.reason(), stall.share());
  EXPECT_THAT(stalls, ElementsAre(std::pair("wait", 0.75), std::pair("barrier", 0.25)));
  EXPECT_THAT(kernels->back().stalls(), IsEmpty()) << "n/a and 0 are none";
}

TEST(Counters, NoTableIsAnError) {
  EXPECT_EQ(KernelsIn("==ERROR== ERR_NVGPUCTRPERM\n", Chosen()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(KernelsIn("\"ID\",\"Kernel Name\"\n", Chosen()).status().code(), absl::StatusCode::kNotFound);
}

TEST(Counters, MetricsThatNcuCannotFindAreNamed) {
  EXPECT_THAT(Unknown("==ERROR== Failed to find metric dram__bytes.sum\n==ERROR== Failed to find metric sm__x.avg.\n"),
              ElementsAre("dram__bytes.sum", "sm__x.avg"));
  EXPECT_THAT(Unknown(kOutput), IsEmpty());
}

}  // namespace
}  // namespace attune::profile
