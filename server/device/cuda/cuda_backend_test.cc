// Hosts without a GPU. cuda_device_gpu_test.cc is for those with one.
#include "server/device/cuda/cuda_backend.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/driver_api.h"

namespace attune::device {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WithoutADriver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::DriverApi::Load().ok()) GTEST_SKIP() << "this host has libcuda.so.1";
  }
};

TEST_F(WithoutADriver, SaysWhichLibraryIsMissing) {
  const v1::BackendStatus status = MakeCudaBackend("")->Status();
  EXPECT_EQ(status.backend(), v1::BACKEND_CUDA);
  EXPECT_FALSE(status.available());
  EXPECT_THAT(status.reason(), StartsWith("no NVIDIA driver on this host: libcuda.so.1"));
}

TEST_F(WithoutADriver, HasNoDeviceAndOpensNone) {
  EXPECT_TRUE(MakeCudaBackend("")->Devices().empty());
  EXPECT_EQ(MakeCudaBackend("")->Open("cuda:0").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(WithoutADriver, NamesTheCompilerIfThereIsOne) {
  std::unique_ptr<Backend> backend = MakeCudaBackend("");
  const v1::BackendStatus status = backend->Status();
  const absl::StatusOr<std::unique_ptr<Compiler>> compiler = backend->OpenCompiler();
  if (compiler.ok()) {
    EXPECT_EQ(status.compiler(), (*compiler)->toolchain());
    EXPECT_THAT(status.compiler(), StartsWith("nvrtc "));
  } else {
    EXPECT_EQ(status.compiler(), "");
    EXPECT_THAT(status.reason(), HasSubstr(std::string(compiler.status().message())));
  }
}

TEST(CudaBackend, SaysThatItDoesNotKnowTheProfile) {
  const v1::BackendStatus status = MakeCudaBackend("abacus")->Status();
  EXPECT_FALSE(status.available());
  EXPECT_THAT(status.reason(), HasSubstr("abacus"));
}

TEST(DriverError, NamesTheCallAndTheErrorUnderTheRightCode) {
  const absl::StatusOr<std::shared_ptr<const cuda::DriverApi>> api = cuda::DriverApi::Load();
  if (!api.ok()) GTEST_SKIP() << api.status().message();
  const absl::Status fault = (*api)->Error("cuStreamSynchronize", cuda::kIllegalAddress);
  EXPECT_EQ(fault, absl::AbortedError("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ((*api)->Error("cuMemAlloc", cuda::kOutOfMemory).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace attune::device
