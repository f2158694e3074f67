// Masks, softcap, sinks, sequences of their own lengths, pages and 8-bit keys and values, from the manifest to the
// verdict: the reference kernels against fp64 on the host, attention_opencl against the reference, on every
// distribution of inputs.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/space/space.h"
#include "server/trials/code.h"
#include "server/verify/verify.h"
#include "tests/opencl/device_testing.h"

namespace attune::testing {
namespace {

class OpenClFeatures : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { host_ = OpenHost().release(); }
  static void TearDownTestSuite() {
    delete host_;
    host_ = nullptr;
  }
  void SetUp() override {
    if (host_ == nullptr) GTEST_SKIP() << "this host has no OpenCL device (PoCL: package pocl-opencl-icd)";
    auto families = space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    ASSERT_TRUE(families.ok()) << families.status();
    families_ = *std::move(families);
  }

  // A variant's code and recipe for the problem, as for a device of so many compute units: what is worth trying depends
  // on them, what is right does not.
  template <typename Message>
  void Make(const std::string& text, Message& message, int compute_units = 1) {
    v1::Device device = host_->device->info();
    device.set_compute_units(compute_units);
    const auto variant = space::ParseVariant(text, families_);
    ASSERT_TRUE(variant.ok()) << variant.status();
    const auto spec = space::SpecFor(*variant, problem_, device);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const auto compiled = host_->compiler->Compile(trials::MakeCompileRequest(*variant->family, *spec, device));
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ(compiled->verdict(), v1::VERDICT_OK) << compiled->log();
    const auto recipe = space::RecipeFor(*variant, problem_, device);
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    message.set_artifact(compiled->artifact());
    *message.mutable_recipe() = *recipe;
  }

  void Prepare(const std::string& problem) {
    problem_ = *ParseProblem(problem);
    worker::v1::PrepareRequest request;
    *request.mutable_problem() = ToProto(problem_);
    request.set_seed(1);
    Make("reference_opencl:PLAIN=0", *request.mutable_exact());
    Make("reference_opencl:PLAIN=1", *request.mutable_plain());
    if (HasFatalFailure()) return;
    auto prepared = verify::PreparedProblem::Create(*host_->device, problem_, request, /*inspector=*/nullptr);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    prepared_ = *std::move(prepared);
  }

  void ExpectRight(const std::string& variant, int compute_units) {
    worker::v1::Candidate candidate;
    candidate.set_deterministic(true);
    Make(variant, candidate, compute_units);
    if (HasFatalFailure()) return;
    const auto response = prepared_->Check(candidate, verify::PreparedProblem::Look::kOnHost);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->verdict(), v1::VERDICT_OK) << variant << ": " << response->detail();
  }

  static Host* host_;
  std::vector<std::shared_ptr<const space::Family>> families_;
  Problem problem_;
  std::unique_ptr<verify::PreparedProblem> prepared_;
};
Host* OpenClFeatures::host_ = nullptr;

TEST_P(OpenClFeatures, AreRightInTheReferenceAndInEveryKindOfVariant) {
  ASSERT_NO_FATAL_FAILURE(Prepare(GetParam()));
  struct {
    const char* variant;
    int compute_units;
  } const kinds[] = {
      {"attention_opencl:BLOCK_M=32,BLOCK_N=32,THREADS=8,LANES=1,VEC=16,LOCAL_KV=1,UNROLL=1,KV_SPLITS=1,PERSISTENT=0",
       1},
      {"attention_opencl:BLOCK_M=16,BLOCK_N=32,THREADS=4,LANES=1,VEC=16,LOCAL_KV=0,UNROLL=1,KV_SPLITS=1,PERSISTENT=0",
       1},
      {"attention_opencl:BLOCK_M=16,BLOCK_N=32,THREADS=4,LANES=1,VEC=8,LOCAL_KV=1,UNROLL=1,KV_SPLITS=2,PERSISTENT=0",
       99},
      {"attention_opencl:BLOCK_M=16,BLOCK_N=32,THREADS=4,LANES=1,VEC=8,LOCAL_KV=1,UNROLL=1,KV_SPLITS=1,PERSISTENT=2",
       1}};
  for (const auto& [variant, compute_units] : kinds) ExpectRight(variant, compute_units);
}

// As code is served; CMakeLists.txt has all others compiled unoptimized.
INSTANTIATE_TEST_SUITE_P(Optimized, OpenClFeatures,
                         ::testing::Values("b4.h4.kvh2.q60.kv90.d64.f16.window30.softcap5.sinks.varlen.page16.lse",
                                           "b3.h4.kvh2.q30.kv40.d64.bf16.kve4m3.causal.sinks.varlen.lse"));

INSTANTIATE_TEST_SUITE_P(
    All, OpenClFeatures,
    ::testing::Values("b1.h2.q65.kv130.d64.f16.window40.lse", "b1.h2.q130.kv65.d32.f16.window9.lse",
                      "b1.h1.q50.d32.f16.window16777216", "b1.h2.q37.kv70.d64.bf16.causal.softcap20.lse",
                      "b1.h4.kvh2.q70.kv70.d64.f16.sinks.bshd.lse", "b1.h4.q40.kv35.d32.f16.causal-br.sinks.lse",
                      "b4.h4.kvh2.q50.kv70.d64.f16.varlen.lse", "b4.h2.q50.kv70.d32.f16.causal-br.varlen.lse",
                      "b5.h2.q50.kv50.d32.f16.causal.varlen.lse", "b4.h4.kvh2.q50.kv100.d64.f16.page16.lse",
                      "b3.h4.kvh1.q40.kv90.d32.bf16.causal-br.bshd.page7", "b4.h2.q33.kv65.d32.f16.causal.page1.lse",
                      "b4.h4.kvh2.q60.kv90.d64.f16.window30.softcap5.sinks.varlen.page16.lse",
                      "b2.h4.kvh2.q37.kv70.d64.f16.kve4m3.lse",
                      "b2.h4.kvh1.q40.kv70.d32.bf16.kve5m2.causal-br.bshd.lse",
                      "b2.h2.q50.kv65.d32.f16.kve5m2.window20.softcap20.lse",
                      "b3.h4.kvh2.q30.kv40.d64.bf16.kve4m3.causal.sinks.varlen.lse",
                      "b4.h4.kvh2.q33.kv65.d32.f16.kve4m3.page7.lse",
                      "b4.h4.kvh2.q40.kv70.d64.f16.kve5m2.window30.softcap5.sinks.varlen.page16.lse"));

}  // namespace
}  // namespace attune::testing
