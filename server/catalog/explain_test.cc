#include "server/catalog/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/attune/problem.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;
using Response = v1::ExplainResponse;

v1::Device H200() {
  v1::Device device;
  device.set_id("cuda:0");
  device.set_backend(v1::BACKEND_CUDA);
  device.set_compute_units(132);
  device.set_compute_capability(90);
  device.set_sm_clock_mhz(1830);
  device.set_memory_bandwidth_gbs(4800);
  return device;
}

v1::Trial Trial(const std::string& problem, double us, int64_t ctas) {
  v1::Trial trial;
  *trial.mutable_problem() = ToProto(*ParseProblem(problem));
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_median_us(us);
  trial.mutable_geometry()->set_ctas(ctas);
  trial.mutable_geometry()->set_sm_count(132);
  trial.mutable_geometry()->set_ctas_per_sm(2);
  trial.mutable_geometry()->set_waves(static_cast<double>(ctas) / 264);
  trial.mutable_geometry()->set_occupancy(0.5);
  return trial;
}

void Set(v1::Trial& trial, const std::string& name, int64_t value) {
  v1::ParameterValue* parameter = trial.mutable_variant()->add_parameters();
  parameter->set_name(name);
  parameter->set_value(value);
}

// Of a trial without neighbours, whose family is not here.
Response Explain(const v1::Trial& trial, const v1::Device& device, double floor_us) {
  return catalog::Explain(trial, device, floor_us, Moves(trial, nullptr, device, {}));
}

const Response::Finding* Find(const Response& response, Response::Bound bound) {
  for (const Response::Finding& finding : response.findings()) {
    if (finding.bound() == bound) return &finding;
  }
  return nullptr;
}

TEST(Explain, AGridSmallerThanTheChipWeighsMost) {
  v1::Trial trial = Trial("b2.h4.q64.d64.f16", 10, 8);
  Set(trial, "KV_SPLITS", 1);
  const Response response = Explain(trial, H200(), 1.5);
  ASSERT_GT(response.findings_size(), 0);
  EXPECT_EQ(response.findings(0).bound(), Response::BOUND_GRID);
  EXPECT_EQ(response.findings(0).text(), "8 CTAs on 132 SMs: 94 % of the chip idle");
  EXPECT_EQ(response.findings(0).advice(), "") << "whether more splits are feasible is not known";
}

TEST(Explain, OneCtaIsNotMany) {
  const Response response = Explain(Trial("b1.h1.q64.d64.f16", 10, 1), H200(), 1.5);
  ASSERT_NE(Find(response, Response::BOUND_GRID), nullptr);
  EXPECT_EQ(Find(response, Response::BOUND_GRID)->text(), "1 CTA on 132 SMs: 99 % of the chip idle");
}

TEST(Explain, SmallRatesHaveAFigureToo) {
  v1::Device cpu = H200();
  cpu.set_compute_capability(0);
  const Response response = Explain(Trial("b1.h1.q64.d32.f16", 1000, 300), cpu, 0);  // 0.5 MFLOP in 1 ms
  EXPECT_EQ(Find(response, Response::BOUND_COMPUTE)->text(), "0.524 GFLOP/s; the compute roof of cuda:0 is not known");
}

TEST(Explain, AFullGridIsNoFinding) {
  EXPECT_EQ(Find(Explain(Trial("b4.h32.q4096.d64.f16", 2000, 264), H200(), 1.5), Response::BOUND_GRID), nullptr);
}

TEST(Explain, UnusedTensorCoresAreNamedOnCudaOnly) {
  v1::Trial trial = Trial("b4.h32.q4096.d64.f16", 2000, 264);
  Set(trial, "MMA", 0);
  EXPECT_NE(Find(Explain(trial, H200(), 0), Response::BOUND_TENSOR_CORES_UNUSED), nullptr);
  v1::Device opencl = H200();
  opencl.set_backend(v1::BACKEND_OPENCL);
  EXPECT_EQ(Find(Explain(trial, opencl, 0), Response::BOUND_TENSOR_CORES_UNUSED), nullptr);
}

TEST(Explain, TheMemoryRoofIsGivenAsAShare) {
  // 2 * (1 * 32 + 2 * 8 * 65536 + 1 * 32) * 128 bytes in 70 us.
  const Response response = Explain(Trial("b1.h32.kvh8.q1.kv65536.d128.f16", 70, 264), H200(), 0);
  EXPECT_NEAR(response.gbs(), 3835, 5);
  ASSERT_NE(Find(response, Response::BOUND_MEMORY), nullptr);
  EXPECT_EQ(response.findings(0).bound(), Response::BOUND_MEMORY);
  EXPECT_THAT(response.findings(0).text(), HasSubstr("80 % of the 4800 GB/s"));
}

TEST(Explain, TheComputeRoofFollowsFromTheComputeCapability) {
  const Response response = Explain(Trial("b4.h16.q4096.d128.f16", 800, 264), H200(), 0);
  EXPECT_NEAR(response.tflops(), 687, 1);
  EXPECT_EQ(response.findings(0).bound(), Response::BOUND_COMPUTE);
  EXPECT_THAT(response.findings(0).text(), HasSubstr("of the 989 TFLOP/s that"));
}

TEST(Explain, RoofsThatAreNotKnownAreSaidToBe) {
  v1::Device device = H200();
  device.set_compute_capability(0);
  device.set_memory_bandwidth_gbs(0);
  const Response response = Explain(Trial("b4.h16.q4096.d128.f16", 800, 264), device, 0);
  EXPECT_THAT(Find(response, Response::BOUND_COMPUTE)->text(), HasSubstr("roof of cuda:0 is not known"));
  EXPECT_THAT(Find(response, Response::BOUND_MEMORY)->text(), HasSubstr("bandwidth of cuda:0 is not known"));
}

TEST(Explain, NearTheLaunchFloorIsSaid) {
  EXPECT_NE(Find(Explain(Trial("b1.h1.q16.d64.f16", 2, 264), H200(), 1.5), Response::BOUND_LATENCY), nullptr);
  EXPECT_EQ(Find(Explain(Trial("b1.h1.q16.d64.f16", 20, 264), H200(), 1.5), Response::BOUND_LATENCY), nullptr);
  EXPECT_EQ(Find(Explain(Trial("b1.h1.q16.d64.f16", 2, 264), H200(), 0), Response::BOUND_LATENCY), nullptr);
}

TEST(Explain, LowOccupancyComesWithWhatTakesTheRoom) {
  v1::Trial trial = Trial("b4.h32.q4096.d64.f16", 2000, 264);
  trial.mutable_geometry()->set_occupancy(0.125);
  trial.mutable_resources()->set_registers(255);
  trial.mutable_resources()->set_shared_bytes(98304);
  const Response response = Explain(trial, H200(), 0);
  ASSERT_NE(Find(response, Response::BOUND_OCCUPANCY), nullptr);
  EXPECT_THAT(Find(response, Response::BOUND_OCCUPANCY)->text(), HasSubstr("255 registers"));
}

// What was measured goes before what is reckoned.
TEST(Explain, CountersComeFirstAndAreLeftOutWhereThereAreNone) {
  v1::Trial trial = Trial("b2.h4.q64.d64.f16", 10, 8);
  EXPECT_EQ(Find(Explain(trial, H200(), 1.5), Response::BOUND_COUNTERS), nullptr);
  v1::Counter& counter = *trial.mutable_profile()->add_kernels()->add_counters();
  counter.set_name("sms_busy");
  counter.set_value(0.06);
  const Response response = Explain(trial, H200(), 1.5);
  ASSERT_GT(response.findings_size(), 1);
  EXPECT_EQ(response.findings(0).bound(), Response::BOUND_COUNTERS);
  EXPECT_EQ(response.findings(0).text(), "by its counters: too few CTAs: the SMs are busy 6 % of the time");
  EXPECT_EQ(response.findings(1).bound(), Response::BOUND_GRID) << "with its advice";
}

TEST(Explain, WhatASanitizerFoundGoesBeforeAll) {
  v1::Trial trial = Trial("b2.h4.q64.d64.f16", 10, 8);
  v1::SanitizerRun& clean = *trial.mutable_sanitizing()->add_runs();
  clean.set_tool(v1::SANITIZER_TOOL_MEMCHECK);
  EXPECT_EQ(Find(Explain(trial, H200(), 1.5), Response::BOUND_SANITIZER), nullptr);
  v1::SanitizerRun& run = *trial.mutable_sanitizing()->add_runs();
  run.set_tool(v1::SANITIZER_TOOL_RACECHECK);
  run.set_errors(1);
  run.add_findings("Race reported");
  const Response response = Explain(trial, H200(), 1.5);
  EXPECT_EQ(response.findings(0).bound(), Response::BOUND_SANITIZER);
  EXPECT_EQ(response.findings(0).text(), "racecheck reports 1 error: Race reported");
}

TEST(Explain, ABadVerdictIsAllThereIsToSay) {
  v1::Trial trial = Trial("b1.h1.q16.d64.f16", 0, 1);
  trial.set_verdict(v1::VERDICT_CRASHED);
  trial.set_detail("illegal address");
  const Response response = Explain(trial, H200(), 1.5);
  ASSERT_EQ(response.findings_size(), 1);
  EXPECT_EQ(response.findings(0).bound(), Response::BOUND_NOT_OK);
  EXPECT_EQ(response.findings(0).text(), "the verdict is CRASHED: illegal address");
}

}  // namespace
}  // namespace attune::catalog
