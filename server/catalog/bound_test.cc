#include "server/catalog/bound.h"

#include <map>

#include "gtest/gtest.h"

namespace attune::catalog {
namespace {

v1::Profile ProfileOf(const std::map<std::string, double>& counters, const std::string& stall = "") {
  v1::Profile profile;
  v1::KernelProfile& kernel = *profile.add_kernels();
  kernel.set_entry("attention");
  for (const auto& [name, value] : counters) {
    v1::Counter& counter = *kernel.add_counters();
    counter.set_name(name);
    counter.set_value(value);
  }
  if (!stall.empty()) {
    kernel.add_stalls()->set_reason(stall);
    kernel.mutable_stalls(0)->set_share(0.75);
  }
  return profile;
}

TEST(Bound, NearAPeakItIsThat) {
  EXPECT_EQ(BoundOf(ProfileOf({{"sms_busy", 0.99}, {"dram_throughput", 0.912}, {"l2_throughput", 0.5}}, "wait")),
            "DRAM, at 91 % of its peak");
}

TEST(Bound, WhatStreamsFromDramIsNotBoundByTheL2OnTheWay) {
  EXPECT_EQ(BoundOf(ProfileOf({{"sms_busy", 0.93}, {"dram_throughput", 0.9004}, {"l2_throughput", 0.9015}})),
            "DRAM, at 90 % of its peak");
  EXPECT_EQ(BoundOf(ProfileOf({{"sms_busy", 0.93}, {"dram_throughput", 0.8}, {"l2_throughput", 0.9}})),
            "L2, at 90 % of its peak");
}

TEST(Bound, BelowItTheLargestStallIsNamedToo) {
  EXPECT_EQ(
      BoundOf(ProfileOf({{"sms_busy", 0.99}, {"tensor_pipe", 0.65}}, "math_pipe_throttle")),
      "mostly the tensor pipe, at 65 % of its peak; warps mostly stall on math_pipe_throttle (75 %: the tensor or "
      "an arithmetic pipe is taken)");
}

TEST(Bound, FarFromEveryPeakItIsLatency) {
  EXPECT_EQ(BoundOf(ProfileOf({{"sms_busy", 0.99}, {"l2_throughput", 0.3}}, "unheard_of")),
            "latency: nothing is above 30 % of its peak (L2); warps mostly stall on unheard_of (75 %)");
}

TEST(Bound, IdleSmsComeBeforeAll) {
  EXPECT_EQ(BoundOf(ProfileOf({{"sms_busy", 0.034}, {"dram_throughput", 0.9}})),
            "too few CTAs: the SMs are busy 3 % of the time");
}

TEST(Bound, BankConflictsAreNamedWhereTheyAreMany) {
  EXPECT_EQ(BoundOf(ProfileOf({{"l2_throughput", 0.3}, {"bank_conflicts", 500}, {"shared_wavefronts", 1000}})),
            "latency: nothing is above 30 % of its peak (L2); 50 % of its shared-memory wavefronts are bank conflicts");
  EXPECT_EQ(BoundOf(ProfileOf({{"l2_throughput", 0.3}, {"bank_conflicts", 100}, {"shared_wavefronts", 1000}})),
            "latency: nothing is above 30 % of its peak (L2)");
}

TEST(Bound, OfSeveralKernelsTheLongestIsTheOne) {
  v1::Profile profile = ProfileOf({{"duration_us", 10}, {"dram_throughput", 0.9}});
  *profile.add_kernels() = ProfileOf({{"duration_us", 90}, {"l2_throughput", 0.85}}).kernels(0);
  profile.mutable_kernels(1)->set_entry("reduce");
  EXPECT_EQ(BoundOf(profile), "reduce: L2, at 85 % of its peak");
}

TEST(Bound, WithoutCountersNothingIsSaid) { EXPECT_EQ(BoundOf(v1::Profile()), ""); }

}  // namespace
}  // namespace attune::catalog
