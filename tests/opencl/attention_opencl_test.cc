// kernels_src/attention_opencl and reference_opencl against fp64 on the host, at shapes that no tile divides.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/opencl/attention_testing.h"
#include "tests/opencl/device_testing.h"
#include "tests/opencl/recipes.h"

namespace attune::testing {
namespace {

constexpr Inputs kAllInputs[] = {Inputs::kNormal, Inputs::kOffsetMean, Inputs::kLargeLogits, Inputs::kDominantKey,
                                 Inputs::kNaNRow};

class OpenClKernels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { host_ = OpenHost().release(); }
  static void TearDownTestSuite() {
    delete host_;
    host_ = nullptr;
  }
  void SetUp() override {
    if (host_ == nullptr) GTEST_SKIP() << "this host has no OpenCL device (PoCL: package pocl-opencl-icd)";
  }

  // Compiles for one problem's head_dim and dtype; runs every problem on every kind of input.
  static void ExpectRight(const Attention& variant, const std::vector<std::string>& problems, int runs = 1) {
    const Problem first = *ParseProblem(problems.front());
    absl::StatusOr<worker::v1::CompileResponse> compiled = Compile(
        *host_,
        {"kernels_src/attention_opencl/attention.cl", "kernels_src/opencl/elements.h", "kernels_src/opencl/sequence.h"},
        variant.Options(first), {"attention", "combine"});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ(compiled->verdict(), v1::VERDICT_OK) << compiled->log();
    for (const std::string& text : problems) {
      const Problem problem = *ParseProblem(text);
      for (Inputs inputs : kAllInputs) {
        const Tensors tensors = MakeTensors(problem, inputs, /*seed=*/1);
        const Result expected = HostAttention(problem, tensors);
        absl::StatusOr<Outputs> outputs =
            RunAttention(*host_->device, compiled->artifact(), variant.Recipe(problem, host_->device->info()), problem,
                         tensors, {.runs = runs});
        ASSERT_TRUE(outputs.ok()) << text << ": " << outputs.status();
        EXPECT_EQ(Difference(outputs->o, problem, expected), "") << text << ", inputs " << static_cast<int>(inputs);
        if (problem.lse) {
          EXPECT_EQ(Difference(outputs->lse, expected.lse, 1e-4), "") << text;
        }
        EXPECT_TRUE(outputs->red_zones_intact) << text;
        EXPECT_TRUE(outputs->inputs_unchanged) << text;
      }
    }
  }

  static void ExpectReferenceRight(const std::string& text, bool plain, double tolerance) {
    const Problem problem = *ParseProblem(text);
    absl::StatusOr<worker::v1::CompileResponse> compiled = Compile(
        *host_,
        {"kernels_src/reference_opencl/reference.cl", "kernels_src/opencl/elements.h", "kernels_src/opencl/sequence.h"},
        ReferenceOptions(problem, plain), {"reference"});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ(compiled->verdict(), v1::VERDICT_OK) << compiled->log();
    for (Inputs inputs : {Inputs::kOffsetMean, Inputs::kNaNRow}) {
      const Tensors tensors = MakeTensors(problem, inputs, /*seed=*/1);
      const Result expected = HostAttention(problem, tensors);
      absl::StatusOr<Outputs> outputs = RunAttention(*host_->device, compiled->artifact(), ReferenceRecipe(problem),
                                                     problem, tensors, {.o_element_bytes = 4});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_EQ(Difference(outputs->o_f32, expected.o, tolerance), "")
          << text << ", inputs " << static_cast<int>(inputs);
      EXPECT_EQ(Difference(outputs->lse, expected.lse, plain ? 1e-2 : 1e-5), "") << text;
      EXPECT_TRUE(outputs->red_zones_intact);
    }
  }

  static Host* host_;
};
Host* OpenClKernels::host_ = nullptr;

const char* const kOddShapes[] = {"b1.h1.q1.d64.f16.lse", "b1.h1.q239.kv1.d64.f16.lse", "b1.h1.q1.kv799.d64.f16.lse",
                                  "b1.h2.q113.kv203.d64.f16.lse", "b2.h4.kvh2.q127.kv128.d64.f16.lse"};
const char* const kMasks[] = {"b1.h2.q113.kv203.d64.f16.causal.lse", "b1.h2.q113.kv203.d64.f16.causal-br.lse",
                              "b1.h1.q203.kv113.d64.f16.causal.lse", "b1.h1.q203.kv113.d64.f16.causal-br.lse",
                              "b2.h4.kvh1.q65.d64.f16.causal.bshd.lse"};
std::vector<std::string> All(absl::Span<const char* const> a, absl::Span<const char* const> b) {
  std::vector<std::string> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

TEST_F(OpenClKernels, LocalTilesAreRightAtOddShapesAndUnderMasks) { ExpectRight({}, All(kOddShapes, kMasks)); }

TEST_F(OpenClKernels, KeysReadInPlaceAreRightAtOddShapesAndUnderMasks) {
  ExpectRight({.block_n = 64, .local_kv = false}, All(kOddShapes, kMasks));
}

TEST_F(OpenClKernels, SplitsAreCombinedRightEvenWhenMasksLeaveThemEmpty) {
  ExpectRight({.kv_splits = 2}, All(kOddShapes, kMasks));
  ExpectRight({.block_m = 16, .threads = 4, .kv_splits = 64}, All(kOddShapes, kMasks));
}

TEST_F(OpenClKernels, PersistentWorkGroupsLeaveTheirCounterReadyForTheNextRun) {
  ExpectRight({.block_m = 16, .threads = 4, .kv_splits = 2, .groups_per_unit = 2}, All(kOddShapes, kMasks), /*runs=*/3);
}

TEST_F(OpenClKernels, LanesThatShareARowAreRight) {
  ExpectRight({.threads = 64, .lanes = 4, .vec = 4, .unroll = 4}, {kOddShapes[3], kMasks[3]});
  ExpectRight({.threads = 64, .lanes = 8, .vec = 1, .local_kv = false, .kv_splits = 2}, {kOddShapes[3], kMasks[3]});
}

TEST_F(OpenClKernels, EveryHeadDimIsRightInBothTypes) {
  for (const char* dim : {"d32", "d96", "d128", "d256"}) {
    ExpectRight({}, {std::string("b1.h2.kvh1.q67.kv130.") + dim + ".f16.causal-br.lse"});
  }
  for (const char* dim : {"d64", "d128"}) {
    ExpectRight({.kv_splits = 2}, {std::string("b1.h2.kvh1.q67.kv130.") + dim + ".bf16.causal-br.bshd.lse"});
  }
}

TEST_F(OpenClKernels, TheReferenceIsFarCloserThanTheTolerance) {
  ExpectReferenceRight("b1.h4.kvh2.q113.kv203.d64.f16.lse", /*plain=*/false, 1e-5);
  ExpectReferenceRight("b1.h2.q203.kv113.d96.bf16.causal-br.bshd.lse", /*plain=*/false, 1e-5);
}

TEST_F(OpenClKernels, ThePlainReferenceRoundsAsItsTypeDoes) {
  ExpectReferenceRight("b1.h1.q113.kv203.d64.f16.lse", /*plain=*/true, 2e-3);
  ExpectReferenceRight("b1.h1.q113.kv203.d64.bf16.lse", /*plain=*/true, 2e-2);
}

}  // namespace
}  // namespace attune::testing
