// For tests that need a GPU: its kernels compiled and loaded, recipes to run them, memory to look at.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_GPU_TEST_H_
#define ATTUNE_SERVER_DEVICE_CUDA_GPU_TEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/device/cuda/cuda_backend.h"

namespace attune::device {

inline v1::KernelArg BufferArg(v1::BufferRole role) {
  v1::KernelArg arg;
  arg.mutable_buffer()->set_role(role);
  return arg;
}
inline v1::KernelArg I32(int32_t value) {
  v1::KernelArg arg;
  arg.set_i32(value);
  return arg;
}
inline v1::KernelArg I64(int64_t value) {
  v1::KernelArg arg;
  arg.set_i64(value);
  return arg;
}
inline v1::KernelArg F32(float value) {
  v1::KernelArg arg;
  arg.set_f32(value);
  return arg;
}

inline v1::LaunchRecipe Recipe(const std::string& entry, int64_t blocks, int64_t threads,
                               const std::vector<v1::KernelArg>& args, int64_t dynamic_shared_bytes = 0) {
  v1::LaunchRecipe recipe;
  v1::KernelLaunch& launch = *recipe.add_launches();
  launch.set_entry(entry);
  launch.mutable_grid()->set_x(blocks);
  launch.mutable_block()->set_x(threads);
  for (v1::Dim3* dim3 : {launch.mutable_grid(), launch.mutable_block()}) {
    dim3->set_y(1);
    dim3->set_z(1);
  }
  launch.set_dynamic_shared_bytes(dynamic_shared_bytes);
  for (const v1::KernelArg& arg : args) *launch.add_args() = arg;
  return recipe;
}

template <typename T>
absl::Span<const std::byte> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}
template <typename T>
absl::Span<std::byte> MutableBytes(std::vector<T>* values) {
  return {reinterpret_cast<std::byte*>(values->data()), values->size() * sizeof(T)};
}

class GpuTest : public ::testing::Test {
 protected:
  // `kernels`: CUDA C++.
  explicit GpuTest(const char* kernels) : kernels_(kernels) {}

  // Opens the first device with the kernels loaded; false skips the test.
  bool Open(const std::string& emulate = "") {
    backend_ = MakeCudaBackend(emulate);
    const v1::BackendStatus status = backend_->Status();
    if (!status.available() || status.compiler().empty()) {
      reason_ = status.reason();
      return false;
    }
    device_ = backend_->Open("cuda:0").value();
    if (device_->info().compute_capability() < least_capability_) {
      reason_ = absl::StrCat("compute capability is ", device_->info().compute_capability());
      return false;
    }
    module_ = device_->Load(Compile(device_->info().target())).value();
    return true;
  }

  absl::Span<const std::byte> Compile(const std::string& target) {
    worker::v1::CompileRequest request;
    request.set_backend(v1::BACKEND_CUDA);
    request.set_target(target);
    auto* source = request.add_sources();
    source->set_path("kernels.cu");
    source->set_text(kernels_);
    const worker::v1::CompileResponse response = backend_->OpenCompiler().value()->Compile(request).value();
    EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << response.log();
    artifact_ = response.artifact();
    return {reinterpret_cast<const std::byte*>(artifact_.data()), artifact_.size()};
  }

  absl::StatusOr<std::unique_ptr<Runnable>> Bind(const v1::LaunchRecipe& recipe, const Bindings& bindings = {}) {
    return device_->Bind(*module_, recipe, bindings);
  }
  double HotUs(Runnable& runnable, int runs) {
    Runnable* pointer = &runnable;
    return device_->TimeHot({&pointer, 1}, runs).value() * 1e6;
  }
  std::unique_ptr<Buffer> Counter() {
    std::unique_ptr<Buffer> buffer = device_->Allocate(256).value();
    EXPECT_TRUE(device_->Fill(*buffer, 0, 256, std::byte{0}).ok());
    return buffer;
  }
  int ReadCounter(const Buffer& counter) {
    std::vector<int> value(1);
    EXPECT_TRUE(device_->Download(counter, 0, MutableBytes(&value)).ok());
    return value[0];
  }

  const char* const kernels_;
  int64_t least_capability_ = 0;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Module> module_;
  std::string artifact_;
  std::string reason_;
};

#define OPEN_OR_SKIP(...) \
  if (!Open(__VA_ARGS__)) GTEST_SKIP() << reason_

}  // namespace attune::device

#endif  // ATTUNE_SERVER_DEVICE_CUDA_GPU_TEST_H_
