// NVRTC and PoCL in a caged compile worker: the project's own kernels compile as they do outside, and no source brings
// a file that is not its own.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/cage_kernel.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"
#include "server/supervisor/connection.h"
#include "server/supervisor/probe.h"
#include "server/trials/code.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using worker::v1::CompileRequest;
using worker::v1::CompileResponse;

constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr char kSecret[] = "attune_secret_of_somebody_else";

supervisor::WorkerOptions Options(bool cage) {
  supervisor::WorkerOptions options;
  options.executable = ATTUNE_WORKER;
  options.cage = cage;
  return options;
}

// A compile worker as the pool starts it.
class Compiler {
 public:
  explicit Compiler(bool cage = true)
      : connection_(supervisor::Connection::Start(
            ATTUNE_WORKER, supervisor::WorkerArguments("compile", Options(cage)),
            cage ? supervisor::Environment::kScrubbed : supervisor::Environment::kInherited)) {}

  // What failed in the worker, or its death, is a verdict with the words in the log.
  CompileResponse Compile(const CompileRequest& compile) {
    worker::v1::Request request;
    *request.mutable_compile() = compile;
    supervisor::CallResult result = (*connection_)->Call(request, kPatience);
    if (result.failure == supervisor::CallFailure::kNone && result.response.error_code() == 0) {
      return std::move(*result.response.mutable_compile());
    }
    CompileResponse failed;
    failed.set_verdict(v1::VERDICT_CRASHED);
    failed.set_log(result.detail + result.response.error_message());
    return failed;
  }

 private:
  absl::StatusOr<std::unique_ptr<supervisor::Connection>> connection_;
};

class CagedCompiler : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (auto probed = supervisor::ProbeHost(Options(false)); probed.ok()) host_ = *std::move(probed);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/secret.h") << kSecret << "\n";
    std::filesystem::create_symlink(folder_ + "/secret.h", folder_ + "/link.h");
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (LandlockVersion() == 0) GTEST_SKIP() << "this kernel has no Landlock";
    if (!supervisor::CanCage(host_)) GTEST_SKIP() << "nothing is caged on a host where OpenCL has a GPU";
  }

  static bool Has(v1::Backend backend) {
    for (const v1::BackendStatus& status : host_.backends) {
      if (status.backend() == backend) return !status.compiler().empty();
    }
    return false;
  }

  static CompileRequest Source(v1::Backend backend, const std::string& target, const std::string& text) {
    CompileRequest request;
    request.set_backend(backend);
    request.set_target(target);
    request.add_sources()->set_path("kernel.cl");
    request.mutable_sources(0)->set_text(text);
    return request;
  }
  static CompileRequest Cuda(const std::string& text) {
    return Source(v1::BACKEND_CUDA, "sm_89", text + "\nextern \"C\" __global__ void k(float* x) { *x = 1; }\n");
  }
  static CompileRequest OpenCl(const std::string& text) {
    return Source(v1::BACKEND_OPENCL, host_.devices.front().target(),
                  text + "\nkernel void k(global float* x) { *x = 1; }\n");
  }

  // Every way to name a file that a preprocessor knows.
  static std::vector<std::string> Includes(const std::string& path) {
    return {"#include \"" + path + "\"",     "#include <" + path + ">",
            "%:include \"" + path + "\"",    "#define FILE \"" + path + "\"\n#include FILE",
            "#inc\\\nlude \"" + path + "\"", "#include_next \"" + path + "\""};
  }

  // Compiles `request`, which reaches for the secret: no word of it may come back.
  void MustNotBringTheSecret(const CompileRequest& request) {
    const CompileResponse response = Compiler().Compile(request);
    EXPECT_NE(response.verdict(), v1::VERDICT_OK) << request.sources(0).text();
    EXPECT_THAT(response.log(), Not(HasSubstr(kSecret))) << request.sources(0).text();
    EXPECT_THAT(response.artifact(), Not(HasSubstr(kSecret))) << request.sources(0).text();
  }

  static supervisor::HostDescription host_;
  static const std::string folder_;
};

supervisor::HostDescription CagedCompiler::host_;
const std::string CagedCompiler::folder_ = ::testing::TempDir() + "/caged-compiler-" + std::to_string(getpid());

// The variants that are served where nothing was tuned, for the cards that the project is for.
TEST_F(CagedCompiler, CompilesTheProjectsCudaKernels) {
  if (!Has(v1::BACKEND_CUDA)) GTEST_SKIP() << "no NVRTC on this host";
  const space::LoadedFamilies loaded = space::LoadEveryFamily({ATTUNE_SOURCE_DIR "/kernels_src"});
  const Problem problem = *ParseProblem("b2.h8.q512.d64.f16");
  Compiler caged, free(/*cage=*/false);
  for (const char* profile : {"l4", "h200"}) {
    const v1::Device device = *DeviceProfile(profile);
    int compiled = 0;
    for (const auto& family : loaded.families) {
      if (family->manifest.backend() != v1::BACKEND_CUDA || !space::Applies(*family, problem, device).ok()) continue;
      const absl::StatusOr<space::Variant> variant = space::Guess(family, problem, device);
      if (!variant.ok()) continue;
      const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, problem, device);
      ASSERT_TRUE(spec.ok()) << spec.status();
      const CompileRequest request = trials::MakeCompileRequest(*family, *spec, device);
      const CompileResponse response = caged.Compile(request);
      EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << profile << " " << variant->ToText() << "\n" << response.log();
      EXPECT_EQ(response.artifact(), free.Compile(request).artifact()) << profile << " " << variant->ToText();
      ++compiled;
    }
    EXPECT_GE(compiled, 3) << profile;
  }
}

TEST_F(CagedCompiler, CompilesWithTheToolkitsHeaders) {
  if (!Has(v1::BACKEND_CUDA)) GTEST_SKIP() << "no NVRTC on this host";
  const CompileResponse response =
      Compiler().Compile(Cuda("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n"));
  EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << response.log();
}

TEST_F(CagedCompiler, NvrtcReadsNobodysFiles) {
  if (!Has(v1::BACKEND_CUDA)) GTEST_SKIP() << "no NVRTC on this host";
  for (const char* name : {"/secret.h", "/link.h"}) {
    for (const std::string& include : Includes(folder_ + name)) MustNotBringTheSecret(Cuda(include));
  }
  for (const std::string& include : Includes("/etc/passwd")) {
    EXPECT_THAT(Compiler().Compile(Cuda(include)).log(), Not(HasSubstr("root:")));
  }
}

TEST_F(CagedCompiler, PoclReadsNobodysFiles) {
  if (host_.devices.empty() || !Has(v1::BACKEND_OPENCL)) GTEST_SKIP() << "no OpenCL device on this host";
  EXPECT_EQ(Compiler().Compile(OpenCl("")).verdict(), v1::VERDICT_OK);
  for (const char* name : {"/secret.h", "/link.h"}) {
    for (const std::string& include : Includes(folder_ + name)) MustNotBringTheSecret(OpenCl(include));
  }
  for (const std::string& include : Includes("/etc/passwd")) {
    EXPECT_THAT(Compiler().Compile(OpenCl(include)).log(), Not(HasSubstr("root:")));
  }
}

// PoCL takes no notice of an assembler's errors: such a kernel compiles, without the file.
TEST_F(CagedCompiler, AnAssemblerBringsNobodysFiles) {
  if (host_.devices.empty() || !Has(v1::BACKEND_OPENCL)) GTEST_SKIP() << "no OpenCL device on this host";
  CompileRequest request = OpenCl("");
  request.mutable_sources(0)->set_text(
      "kernel void k(global float* x) {\n  __asm__ volatile(\".pushsection .rodata\\n.incbin \\\"" + folder_ +
      "/secret.h\\\"\\n.popsection\");\n  *x = 1;\n}\n");
  EXPECT_THAT(Compiler(/*cage=*/false).Compile(request).artifact(), HasSubstr(kSecret)) << "the test reaches nothing";
  const CompileResponse response = Compiler().Compile(request);
  EXPECT_THAT(response.log(), Not(HasSubstr(kSecret)));
  EXPECT_THAT(response.artifact(), Not(HasSubstr(kSecret)));
}

}  // namespace
}  // namespace attune
