#include "server/device/opencl/opencl_backend.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/opencl/opencl_info.h"

namespace attune::device {
namespace {

using ::testing::HasSubstr;

// y[i] = a * x[i] + *b + z, by one work-item an element; z is 0 where the pointer is null.
constexpr char kSource[] =
    "#include \"scale.h\"\n"
    "kernel __attribute__((reqd_work_group_size(4, 1, 1))) void scale(\n"
    "    global const float* x, global float* y, global const float* z, int a, long b, float c) {\n"
    "  const size_t i = get_global_id(0);\n"
    "  y[i] = SCALE(x[i]) * a + b + c + (z ? z[i] : 0.0f);\n"
    "}\n"
    "kernel void counts(global int* n) { atomic_inc(n); }\n"
    "kernel void greedy(global float* y) {\n"
    "  local float tile[1 << 26];\n"
    "  tile[get_local_id(0)] = y[0];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  y[get_local_id(0)] = tile[get_local_id(0)];\n"
    "}\n";

template <typename T>
absl::Span<const std::byte> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}
absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class OpenClBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    backend_ = MakeOpenClBackend();
    const v1::BackendStatus status = backend_->Status();
    if (!status.available()) GTEST_SKIP() << "no OpenCL device here: " << status.reason();
    device_ = *backend_->Open("opencl:0");
    compiler_ = *backend_->OpenCompiler();
  }

  worker::v1::CompileRequest Request(const std::string& text, std::vector<std::string> entries) const {
    worker::v1::CompileRequest request;
    request.set_backend(v1::BACKEND_OPENCL);
    request.set_target(device_->info().target());
    worker::v1::SourceFile& source = *request.add_sources();
    source.set_path("family/scale.cl");
    source.set_text(text);
    worker::v1::SourceFile& header = *request.add_sources();
    header.set_path("scale.h");
    header.set_text("#define SCALE(x) ((x) * FACTOR)\n");
    request.add_options("-DFACTOR=2");
    for (std::string& entry : entries) request.add_entries(std::move(entry));
    return request;
  }

  std::string Artifact() {
    absl::StatusOr<worker::v1::CompileResponse> response = compiler_->Compile(Request(kSource, {"scale"}));
    EXPECT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->verdict(), v1::VERDICT_OK) << response->log();
    return response->artifact();
  }

  // scale over 8 elements.
  static v1::LaunchRecipe ScaleRecipe() {
    v1::LaunchRecipe recipe;
    v1::KernelLaunch& launch = *recipe.add_launches();
    launch.set_entry("scale");
    launch.mutable_grid()->set_x(2);
    launch.mutable_block()->set_x(4);
    for (v1::BufferRole role : {v1::BUFFER_ROLE_Q, v1::BUFFER_ROLE_O, v1::BUFFER_ROLE_LSE}) {
      launch.add_args()->mutable_buffer()->set_role(role);
    }
    launch.add_args()->set_i32(3);
    launch.add_args()->set_i64(100);
    launch.add_args()->set_f32(0.5f);
    return recipe;
  }

  // A buffer of 64 KiB with `values` at `offset`.
  std::unique_ptr<Buffer> BufferWith(const std::vector<float>& values, size_t offset) {
    std::unique_ptr<Buffer> buffer = *device_->Allocate(65536);
    EXPECT_TRUE(device_->Fill(*buffer, 0, 65536, std::byte{0xff}).ok());
    EXPECT_TRUE(device_->Upload(*buffer, offset, Bytes(values)).ok());
    return buffer;
  }

  std::vector<float> Floats(const Buffer& buffer, size_t offset, size_t count) {
    std::vector<float> values(count);
    absl::Status status =
        device_->Download(buffer, offset, {reinterpret_cast<std::byte*>(values.data()), count * sizeof(float)});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  bool ScaleIsRight(const std::string& artifact) {
    std::unique_ptr<Module> module = *device_->Load(Bytes(artifact));
    std::unique_ptr<Buffer> x = BufferWith(x_, 0), y = BufferWith({}, 0);
    Bindings bindings;
    bindings.q = {x.get(), 0, 32};
    bindings.o = {y.get(), 0, 32};
    return (*device_->Bind(*module, ScaleRecipe(), bindings))->Run().ok() && Floats(*y, 0, 8) == y_;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Compiler> compiler_;
  const std::vector<float> x_ = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<float> y_ = {100.5, 106.5, 112.5, 118.5, 124.5, 130.5, 136.5, 142.5};
};

TEST_F(OpenClBackendTest, DevicesAreDescribedWithTheirLimits) {
  const std::vector<v1::Device> devices = backend_->Devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].id(), "opencl:0");
  EXPECT_EQ(devices[0].backend(), v1::BACKEND_OPENCL);
  EXPECT_GE(devices[0].compute_units(), 1);
  EXPECT_GE(devices[0].max_threads_per_block(), 1);
  EXPECT_GE(devices[0].shared_bytes_per_block(), 1024);
  EXPECT_GT(devices[0].memory_bytes(), 0);
  EXPECT_THAT(devices[0].target(), HasSubstr(devices[0].model()));
  EXPECT_EQ(devices[0].fingerprint().size(), 64u);
  EXPECT_THAT(backend_->Status().compiler(), HasSubstr(devices[0].model()));
}

TEST_F(OpenClBackendTest, AnUnknownDeviceIsNotFoundAndTheOthersAreNamed) {
  const absl::Status status = backend_->Open("opencl:99").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("opencl:0"));
}

TEST_F(OpenClBackendTest, RunsARecipeOnViewsWithOffsets) {
  std::unique_ptr<Module> module = *device_->Load(Bytes(Artifact()));
  std::unique_ptr<Buffer> x = BufferWith(x_, 512), y = BufferWith({}, 0);
  Bindings bindings;
  bindings.q = {x.get(), 512, 32};
  bindings.o = {y.get(), 4096, 32};
  absl::StatusOr<std::unique_ptr<Runnable>> runnable = device_->Bind(*module, ScaleRecipe(), bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_TRUE((*runnable)->Run().ok());
  EXPECT_EQ(Floats(*y, 4096, 8), y_);
  EXPECT_THAT(Floats(*y, 4096 - 4, 1), ::testing::ElementsAre(::testing::IsNan()));
  EXPECT_THAT(Floats(*y, 4096 + 32, 1), ::testing::ElementsAre(::testing::IsNan()));
}

// The death test's child starts this test anew in a process of its own; the environment hands it the parent's artifact.
TEST_F(OpenClBackendTest, AnArtifactRunsInAnotherProcess) {
  constexpr char kVariable[] = "ATTUNE_TEST_ARTIFACT";
  if (getenv(kVariable) == nullptr) {
    const std::string path = ::testing::TempDir() + "/attune-test-artifact-" + std::to_string(getpid());
    std::ofstream(path, std::ios::binary) << Artifact();
    setenv(kVariable, path.c_str(), 1);
  }
  const std::string path = getenv(kVariable);
  std::ifstream file(path, std::ios::binary);
  const std::string artifact((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(_exit(ScaleIsRight(artifact) ? 0 : 1), ::testing::ExitedWithCode(0), "");
  std::remove(path.c_str());
  unsetenv(kVariable);
}

TEST_F(OpenClBackendTest, TheCompilerReportsEntriesAndToolchain) {
  absl::StatusOr<worker::v1::CompileResponse> response = compiler_->Compile(Request(kSource, {"scale", "greedy"}));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->verdict(), v1::VERDICT_OK) << response->log();
  ASSERT_EQ(response->entries_size(), 2);
  EXPECT_EQ(response->entries(0).static_shared_bytes(), 0);
  EXPECT_EQ(response->entries(1).static_shared_bytes(), 4 << 26);
  EXPECT_EQ(response->toolchain(), compiler_->toolchain());
  EXPECT_GT(response->compile_ms(), 0);
}

TEST_F(OpenClBackendTest, ACompileErrorNamesFileAndLine) {
  absl::StatusOr<worker::v1::CompileResponse> response =
      compiler_->Compile(Request("#include \"scale.h\"\n\nkernel void f() { undeclared(); int x = y; }\n", {"f"}));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(response->log(), HasSubstr("family/scale.cl:3"));
  EXPECT_TRUE(response->artifact().empty());
}

TEST_F(OpenClBackendTest, AMissingEntryIsACompileErrorThatListsTheKernels) {
  absl::StatusOr<worker::v1::CompileResponse> response = compiler_->Compile(Request(kSource, {"absent"}));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->verdict(), v1::VERDICT_COMPILE_ERROR);
  EXPECT_THAT(response->log(), HasSubstr("scale"));
}

TEST_F(OpenClBackendTest, AnotherTargetIsInvalid) {
  worker::v1::CompileRequest request = Request(kSource, {"scale"});
  request.set_target("sm_89");
  EXPECT_THAT(compiler_->Compile(request).status().message(), HasSubstr("target is 'sm_89'"));
}

TEST_F(OpenClBackendTest, WhatIsNoArtifactIsInvalid) {
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Load(Bytes(std::string("no program"))).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Load({}).status()));
}

TEST_F(OpenClBackendTest, BindNamesWhatDoesNotFit) {
  std::unique_ptr<Module> module = *device_->Load(Bytes(Artifact()));
  std::unique_ptr<Buffer> x = BufferWith(x_, 0);
  Bindings bindings;
  bindings.q = bindings.o = {x.get(), 0, 32};
  v1::LaunchRecipe recipe = ScaleRecipe();
  recipe.mutable_launches(0)->mutable_args()->RemoveLast();
  EXPECT_THAT(device_->Bind(*module, recipe, bindings).status().message(), HasSubstr("the kernel takes 6"));

  recipe = ScaleRecipe();
  recipe.mutable_launches(0)->mutable_args(3)->set_i64(3);
  EXPECT_THAT(device_->Bind(*module, recipe, bindings).status().message(), HasSubstr("argument 3"));

  recipe = ScaleRecipe();
  recipe.mutable_launches(0)->mutable_args(1)->mutable_tensor_map();
  EXPECT_THAT(device_->Bind(*module, recipe, bindings).status().message(), HasSubstr("argument 1: is a tensor map"));

  recipe = ScaleRecipe();
  recipe.mutable_launches(0)->mutable_cluster()->set_x(2);
  EXPECT_THAT(device_->Bind(*module, recipe, bindings).status().message(), HasSubstr("cluster is given"));

  recipe = ScaleRecipe();
  recipe.mutable_launches(0)->set_overlaps_previous(true);
  EXPECT_THAT(device_->Bind(*module, recipe, bindings).status().message(), HasSubstr("overlaps_previous is given"));

  recipe = ScaleRecipe();
  recipe.mutable_launches(0)->set_entry("absent");
  EXPECT_THAT(device_->Bind(*module, recipe, bindings).status().message(), HasSubstr("no such kernel"));

  bindings.o = {x.get(), 65536, 32};
  EXPECT_THAT(device_->Bind(*module, ScaleRecipe(), bindings).status().message(), HasSubstr("of a buffer of 65536"));
}

TEST_F(OpenClBackendTest, WhatTheDeviceCannotRunIsAFailedPrecondition) {
  std::unique_ptr<Module> module = *device_->Load(Bytes(Artifact()));
  std::unique_ptr<Buffer> y = BufferWith({}, 0);
  Bindings bindings;
  bindings.o = {y.get(), 0, 65536};
  v1::LaunchRecipe recipe;
  v1::KernelLaunch& launch = *recipe.add_launches();
  launch.set_entry("greedy");
  launch.mutable_grid()->set_x(1);
  launch.mutable_block()->set_x(1);
  launch.add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_O);
  absl::Status status = device_->Bind(*module, recipe, bindings).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("local memory"));

  launch.set_entry("counts");
  launch.mutable_block()->set_x(device_->info().max_threads_per_block() * 2);
  status = device_->Bind(*module, recipe, bindings).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("work-items"));
}

TEST_F(OpenClBackendTest, TimingRunsAsOftenAsAskedAndGivesSeconds) {
  std::unique_ptr<Module> module = *device_->Load(Bytes(Artifact()));
  std::unique_ptr<Buffer> a = *device_->Allocate(4), b = *device_->Allocate(4);
  v1::LaunchRecipe recipe;
  v1::KernelLaunch& launch = *recipe.add_launches();
  launch.set_entry("counts");
  launch.mutable_grid()->set_x(1);
  launch.mutable_block()->set_x(1);
  launch.add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_O);
  std::vector<std::unique_ptr<Runnable>> owned;
  for (Buffer* buffer : {a.get(), b.get()}) {
    ASSERT_TRUE(device_->Fill(*buffer, 0, 4, std::byte{0}).ok());
    Bindings bindings;
    bindings.o = {buffer, 0, 4};
    owned.push_back(*device_->Bind(*module, recipe, bindings));
  }
  Runnable* const runnables[] = {owned[0].get(), owned[1].get()};
  const absl::StatusOr<double> hot = device_->TimeHot(runnables, 5);
  ASSERT_TRUE(hot.ok()) << hot.status();
  EXPECT_GT(*hot, 0);
  const absl::StatusOr<double> cold = device_->TimeCold(*owned[1]);
  ASSERT_TRUE(cold.ok()) << cold.status();
  EXPECT_GT(*cold, 0);
  const auto count = [&](const Buffer& buffer) {
    int value = 0;
    EXPECT_TRUE(device_->Download(buffer, 0, {reinterpret_cast<std::byte*>(&value), 4}).ok());
    return value;
  };
  EXPECT_EQ(count(*a), 3);
  EXPECT_EQ(count(*b), 2 + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(device_->TimeHot({}, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->TimeHot(runnables, 0).status()));
}

TEST_F(OpenClBackendTest, TransfersStayInsideTheBuffer) {
  std::unique_ptr<Buffer> buffer = *device_->Allocate(16);
  EXPECT_TRUE(absl::IsOutOfRange(device_->Upload(*buffer, 8, Bytes(x_))));
  EXPECT_TRUE(absl::IsOutOfRange(device_->Fill(*buffer, 17, 0, std::byte{0})));
}

TEST_F(OpenClBackendTest, MoreMemoryThanThereIsIsResourceExhausted) {
  EXPECT_TRUE(absl::IsResourceExhausted(device_->Allocate(size_t{1} << 50).status()));
}

TEST(OpenClToolchain, NamesThePoclAndLlvmVersionsAndTheDevice) {
  EXPECT_EQ(opencl::Toolchain("OpenCL 3.0 PoCL 3.1+debian  Linux, RELOC, SPIR, LLVM 15.0.6, SLEEF", "3.1", "a CPU"),
            "PoCL 3.1+debian LLVM 15.0.6 a CPU");
  EXPECT_EQ(opencl::Toolchain("OpenCL 3.0 CUDA 13.0.1", "580.1", "a GPU"), "OpenCL 3.0 CUDA 13.0.1 driver 580.1 a GPU");
}

}  // namespace
}  // namespace attune::device
