// Compiles for real; skips without NVRTC.
#include "server/device/cuda/nvrtc_compiler.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/check/cuda_inspector.h"
#include "server/device/cuda/cuda_backend.h"

namespace attune::device::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using worker::v1::CompileRequest;
using worker::v1::CompileResponse;

class NvrtcCompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Compiler>> compiler = MakeCudaBackend("")->OpenCompiler();
    if (!compiler.ok()) GTEST_SKIP() << compiler.status().message();
    compiler_ = *std::move(compiler);
  }

  static CompileRequest Request(const std::string& text, const std::string& target = "sm_89") {
    CompileRequest request;
    request.set_backend(v1::BACKEND_CUDA);
    request.set_target(target);
    auto* source = request.add_sources();
    source->set_path("kernel.cu");
    source->set_text(text);
    return request;
  }

  std::unique_ptr<Compiler> compiler_;
};

TEST_F(NvrtcCompilerTest, CompilesTheCheckKernelsForRealAndVirtualTargets) {
  for (const char* target : {"sm_80", "sm_90a", "compute_89"}) {
    const absl::StatusOr<std::string> artifact = CompileCheckKernels(*compiler_, target);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    for (const char* entry : {"attune_digest", "attune_compare", "attune_draw"}) {
      EXPECT_TRUE(absl::StrContains(*artifact, entry)) << target;
    }
  }
}

constexpr char kScale[] = R"(extern "C" __global__ void scale(float* x) {
  __shared__ float tile[BLOCK];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = 2 * tile[BLOCK - 1 - threadIdx.x];
}
)";

TEST_F(NvrtcCompilerTest, CompilesACubinAndReportsItsResources) {
  CompileRequest request = Request(kScale);
  request.add_options("-DBLOCK=64");
  request.add_entries("scale");
  const CompileResponse response = compiler_->Compile(request).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << response.log();
  EXPECT_THAT(response.artifact(), StartsWith("\x7f"
                                              "ELF"));
  EXPECT_EQ(response.toolchain(), compiler_->toolchain());
  EXPECT_GT(response.compile_ms(), 0);
  ASSERT_EQ(response.entries_size(), 1);
  EXPECT_EQ(response.entries(0).name(), "scale");
  EXPECT_GT(response.entries(0).registers(), 0);
  EXPECT_EQ(response.entries(0).static_shared_bytes(), 256);
  EXPECT_EQ(response.entries(0).spill_bytes(), 0);
}

TEST_F(NvrtcCompilerTest, CompilesPtxAndReportsTheResourcesItWillHave) {
  CompileRequest request = Request(kScale, "compute_89");
  request.add_options("-DBLOCK=64");
  request.add_entries("scale");
  const CompileResponse ptx = compiler_->Compile(request).value();
  EXPECT_EQ(ptx.verdict(), v1::VERDICT_OK) << ptx.log();
  EXPECT_THAT(ptx.artifact(), HasSubstr(".target sm_89"));
  EXPECT_THAT(ptx.artifact(), HasSubstr(".entry scale"));
  EXPECT_FALSE(absl::StrContains(ptx.artifact(), '\0'));
  request.set_target("sm_89");
  const CompileResponse cubin = compiler_->Compile(request).value();
  EXPECT_EQ(ptx.entries(0).DebugString(), cubin.entries(0).DebugString());
}

TEST_F(NvrtcCompilerTest, SeesSpills) {
  const CompileResponse response =
      compiler_
          ->Compile(Request(R"(extern "C" __global__ void __launch_bounds__(1024) crowd(float* x, int n) {
  float a[128];
  for (int i = 0; i < 128; ++i) a[i] = x[i * n];
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < 128; ++i) a[i] = a[i] * x[j] + a[(i + 1) % 128];
  for (int i = 0; i < 128; ++i) x[i] = a[i];
})"))
          .value();
  ASSERT_EQ(response.entries_size(), 1) << response.log();
  EXPECT_GT(response.entries(0).spill_bytes(), 0);
  EXPECT_GT(response.entries(0).stack_bytes(), 0);
  EXPECT_EQ(response.entries(0).registers(), 64);
}

// The accumulators of a wgmma are changed before it is waited for.
TEST_F(NvrtcCompilerTest, SeesWgmmaThatIsSerialized) {
  const char kSource[] = R"(extern "C" __global__ void __launch_bounds__(128) hasty(float* x, unsigned long long tile) {
  float d0 = x[0], d1 = x[1], d2 = x[2], d3 = x[3];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < 4; ++i) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "l"(tile));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    d0 += 1;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  x[threadIdx.x] = d0 + d1 + d2 + d3;
}
extern "C" __global__ void plain(float* x) { x[0] = 1; }
)";
  const CompileResponse response = compiler_->Compile(Request(kSource, "sm_90a")).value();
  ASSERT_EQ(response.entries_size(), 2) << response.log();
  for (const CompileResponse::Entry& entry : response.entries()) {
    const bool is_hasty = entry.name() == "hasty";
    EXPECT_EQ(absl::StrContains(entry.performance_loss(), "serialized"), is_hasty) << response.log();
  }
}

TEST_F(NvrtcCompilerTest, GivesTheSameCodeForTheSameRequest) {
  CompileRequest request = Request(kScale);
  request.add_options("-DBLOCK=64");
  EXPECT_EQ(compiler_->Compile(request)->artifact(), compiler_->Compile(request)->artifact());
}

TEST_F(NvrtcCompilerTest, ReportsEveryKernelWhenNoneIsNamed) {
  const CompileResponse response =
      compiler_->Compile(Request("extern \"C\" __global__ void a() {}\nextern \"C\" __global__ void b() {}")).value();
  EXPECT_EQ(response.entries_size(), 2);
}

TEST_F(NvrtcCompilerTest, FindsTheOtherSourcesByTheirIncludeNames) {
  CompileRequest request = Request(
      "#include \"tile.cuh\"\n#include <common/math.cuh>\n"
      "extern \"C\" __global__ void k(float* x) { x[kTile] = twice(*x); }");
  auto* tile = request.add_sources();
  tile->set_path("tile.cuh");
  tile->set_text("constexpr int kTile = 4;");
  auto* math = request.add_sources();
  math->set_path("common/math.cuh");
  // Without __device__: unmarked functions are the device's.
  math->set_text("inline float twice(float x) { return 2 * x; }");
  const CompileResponse response = compiler_->Compile(request).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << response.log();
}

TEST_F(NvrtcCompilerTest, FindsTheToolkitsHeaders) {
  const CompileResponse response =
      compiler_
          ->Compile(Request("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <mma.h>\n"
                            "extern \"C\" __global__ void k(__half* x) { x[0] = __hadd(x[1], x[2]); }"))
          .value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << response.log();
}

TEST_F(NvrtcCompilerTest, NamesTheLineOfAnError) {
  const CompileResponse response =
      compiler_->Compile(Request("extern \"C\" __global__ void k(float* x) {\n  x[0] = absent;\n}")).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(response.log(), HasSubstr("kernel.cu(2): error: identifier \"absent\" is undefined"));
  EXPECT_EQ(response.artifact(), "");
}

TEST_F(NvrtcCompilerTest, NamesAHeaderThatIsMissing) {
  const CompileResponse response = compiler_->Compile(Request("#include \"absent.cuh\"\n")).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(response.log(), HasSubstr("absent.cuh"));
}

TEST_F(NvrtcCompilerTest, NamesAnOptionThatItDoesNotKnow) {
  CompileRequest request = Request("");
  request.add_options("--frobnicate");
  const CompileResponse response = compiler_->Compile(request).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(response.log(), HasSubstr("--frobnicate"));
}

TEST_F(NvrtcCompilerTest, NamesAKernelThatIsMissing) {
  CompileRequest request = Request("extern \"C\" __global__ void k() {}");
  request.add_entries("combine");
  const CompileResponse response = compiler_->Compile(request).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(response.log(), StartsWith("kernel.cu: error: no extern \"C\" __global__ function \"combine\""));
}

TEST_F(NvrtcCompilerTest, RefusesTargetsThatAreNone) {
  for (const char* target : {"", "89", "sm_", "sm_eighty", "PoCL", "compute_"}) {
    EXPECT_EQ(compiler_->Compile(Request("", target)).status().code(), absl::StatusCode::kInvalidArgument) << target;
  }
}

TEST_F(NvrtcCompilerTest, RefusesTargetsItDoesNotKnow) {
  const absl::Status status = compiler_->Compile(Request("", "sm_35")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not compile for sm_35; it knows "));
}

TEST_F(NvrtcCompilerTest, CompilesForArchitectureFeatures) {
  const CompileResponse response = compiler_->Compile(Request("extern \"C\" __global__ void k() {}", "sm_90a")).value();
  EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << response.log();
}

TEST_F(NvrtcCompilerTest, RefusesARequestWithoutSources) {
  CompileRequest request;
  request.set_target("sm_89");
  EXPECT_EQ(compiler_->Compile(request).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attune::device::cuda
