// What only a GPU can show. Skips without one, or without NVRTC.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/gpu_test.h"
#include "server/verify/inspection.h"

namespace attune::device {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kKernels[] = R"(
extern "C" __global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {}
}
extern "C" __global__ void count(int* counter) { atomicAdd(counter, 1); }
extern "C" __global__ void add(const float* x, float* y, const float* absent, int n, float by, long long times) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && absent == nullptr) y[i] = x[i] + by * times;
}
extern "C" __global__ void read(const float* x, long long n, float* out) {
  float sum = 0;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  if (sum == 1) *out = sum;
}
extern "C" __global__ void out_of_bounds() { *reinterpret_cast<volatile int*>(16) = 1; }
extern __shared__ int dynamic[];
extern "C" __global__ void shared(int* out) {
  dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[0] = dynamic[blockDim.x - 1];
}
)";

class CudaDeviceGpuTest : public GpuTest {
 protected:
  CudaDeviceGpuTest() : GpuTest(kKernels) {}
  std::unique_ptr<Runnable> Spin(int64_t cycles) { return Bind(Recipe("spin", 1, 1, {I64(cycles)})).value(); }
};

TEST_F(CudaDeviceGpuTest, ItsInspectorAgreesWithTheHostsCode) {
  OPEN_OR_SKIP();
  ASSERT_NE(device_->inspector(), nullptr);
  const absl::Status status = verify::CheckInspector(*device_);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(CudaDeviceGpuTest, UnderALesserTargetTheInspectorAgreesToo) {
  OPEN_OR_SKIP("l4");
  ASSERT_NE(device_->inspector(), nullptr);
  const absl::Status status = verify::CheckInspector(*device_);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(CudaDeviceGpuTest, LargeCopiesKeepEveryByte) {
  OPEN_OR_SKIP();
  std::vector<uint32_t> sent(25'000'001), received(sent.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u);
  const std::unique_ptr<Buffer> buffer = device_->Allocate(sent.size() * sizeof(uint32_t)).value();
  ASSERT_TRUE(device_->Upload(*buffer, 0, Bytes(sent)).ok());
  ASSERT_TRUE(device_->Download(*buffer, 0, MutableBytes(&received)).ok());
  EXPECT_EQ(sent, received);
}

TEST_F(CudaDeviceGpuTest, DescribesTheDevice) {
  OPEN_OR_SKIP();
  const v1::Device& info = device_->info();
  std::printf("%s%s\n", info.DebugString().c_str(), backend_->Status().DebugString().c_str());
  EXPECT_EQ(info.id(), "cuda:0");
  EXPECT_THAT(info.uuid(), StartsWith("GPU-"));
  EXPECT_THAT(info.target(), StartsWith("sm_"));
  EXPECT_EQ(info.fingerprint().size(), 64u);
  EXPECT_EQ(info.warp_size(), 32);
  EXPECT_GE(info.max_warps_per_sm(), 32);
  EXPECT_GE(info.shared_bytes_per_block(), 48 * 1024);
  EXPECT_GE(info.shared_bytes_per_sm(), info.shared_bytes_per_block());
  EXPECT_GT(info.l2_bytes(), 1 << 20);
  EXPECT_GT(info.sm_clock_mhz(), 300);
  EXPECT_GT(info.memory_bandwidth_gbs(), 50);
}

TEST_F(CudaDeviceGpuTest, ReadsTelemetry) {
  OPEN_OR_SKIP();
  const Telemetry telemetry = device_->ReadTelemetry();
  EXPECT_GE(telemetry.sm_clock_mhz, device_->info().sm_clock_mhz() / 10);
  EXPECT_LE(telemetry.sm_clock_mhz, device_->info().sm_clock_mhz() * 1.02);
  EXPECT_GT(telemetry.power_w, 0);
  EXPECT_GT(telemetry.temperature_c, 0);
  EXPECT_FALSE(telemetry.contended);
}

// Cycles that a kernel counted over the time that events measured, against the probe right after it.
TEST_F(CudaDeviceGpuTest, CountsTheClockThatKernelsRunAt) {
  OPEN_OR_SKIP();
  std::unique_ptr<Runnable> spin = Spin(1'000'000);
  HotUs(*spin, 10);
  const double kernel_mhz = 1e6 / HotUs(*spin, 1);
  EXPECT_NEAR(device_->ReadTelemetry().sm_clock_mhz / kernel_mhz, 1, 0.05);
}

TEST_F(CudaDeviceGpuTest, RunsAKernelWithEveryKindOfArgument) {
  OPEN_OR_SKIP();
  const std::vector<float> x = {1, 2, 3, 4};
  std::unique_ptr<Buffer> in = device_->Allocate(1024).value(), out = device_->Allocate(1024).value();
  ASSERT_TRUE(device_->Upload(*in, 256, Bytes(x)).ok());
  ASSERT_TRUE(device_->Fill(*out, 0, 1024, std::byte{0}).ok());
  Bindings bindings;
  bindings.q = {in.get(), 256, 16};
  bindings.scratch = {{nullptr, 0, 0}, {out.get(), 512, 16}};
  v1::KernelArg scratch = BufferArg(v1::BUFFER_ROLE_SCRATCH);
  scratch.mutable_buffer()->set_scratch(1);
  auto runnable = Bind(Recipe("add", 1, 32,
                              {BufferArg(v1::BUFFER_ROLE_Q), scratch, BufferArg(v1::BUFFER_ROLE_LSE), I32(3), F32(0.5),
                               I64(10'000'000'000)}),
                       bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_TRUE((*runnable)->Run().ok());
  std::vector<float> y(4);
  ASSERT_TRUE(device_->Download(*out, 512, MutableBytes(&y)).ok());
  EXPECT_THAT(y, ::testing::ElementsAre(5e9f + 1, 5e9f + 2, 5e9f + 3, 0));
}

TEST_F(CudaDeviceGpuTest, RunsTheLaunchesOfARecipeInOrder) {
  OPEN_OR_SKIP();
  std::unique_ptr<Buffer> counter = Counter();
  Bindings bindings;
  bindings.o = {counter.get(), 0, 4};
  v1::LaunchRecipe recipe = Recipe("count", 1, 1, {BufferArg(v1::BUFFER_ROLE_O)});
  recipe.MergeFrom(Recipe("shared", 1, 64, {BufferArg(v1::BUFFER_ROLE_O)}, 256));
  recipe.MergeFrom(Recipe("count", 1, 1, {BufferArg(v1::BUFFER_ROLE_O)}));
  auto runnable = Bind(recipe, bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_TRUE((*runnable)->Run().ok());
  EXPECT_EQ(ReadCounter(*counter), 63 + 1);
}

TEST_F(CudaDeviceGpuTest, TimesASpinAsLongAsItsCyclesTake) {
  OPEN_OR_SKIP();
  std::unique_ptr<Runnable> spin = Spin(200'000), twice = Spin(400'000);
  HotUs(*spin, 100);  // brings the clock up
  const double once_us = HotUs(*spin, 10), twice_us = HotUs(*twice, 10);
  const double fastest_us = 200'000.0 / static_cast<double>(device_->info().sm_clock_mhz());
  EXPECT_GE(once_us, 0.95 * fastest_us);
  EXPECT_LE(once_us, 4 * fastest_us);
  EXPECT_NEAR(twice_us / once_us, 2, 0.1);
}

TEST_F(CudaDeviceGpuTest, CountsHowLongKernelsHaveRun) {
  OPEN_OR_SKIP();
  const std::unique_ptr<Runnable> spin = Spin(2'000'000);
  ASSERT_TRUE(spin->Run().ok());
  const double run_us = HotUs(*spin, 1);
  const absl::Duration before = device_->Worked();
  ASSERT_TRUE(spin->Run().ok());
  EXPECT_NEAR(absl::ToDoubleMicroseconds(device_->Worked() - before), run_us, 0.2 * run_us);
  const absl::Duration once = device_->Worked();
  HotUs(*spin, 4);  // a warm-up and a replay, of four runs each
  EXPECT_NEAR(absl::ToDoubleMicroseconds(device_->Worked() - once), 8 * run_us, 1.6 * run_us);
}

TEST_F(CudaDeviceGpuTest, TimesAShortSpinAsWellOnceAsAThousandTimes) {
  OPEN_OR_SKIP();
  std::unique_ptr<Runnable> spin = Spin(40'000);
  const double many = HotUs(*spin, 1000);
  const double first = HotUs(*spin, 1);  // a single run behind other work
  const double again = HotUs(*spin, 1);
  EXPECT_GT(first, many / 2);
  EXPECT_LT(first, 2 * many);
  EXPECT_NEAR(again, many, 3) << "first " << first;
}

TEST_F(CudaDeviceGpuTest, RotatesOverRunnablesAndReplaysWhatItHasCaptured) {
  OPEN_OR_SKIP();
  std::unique_ptr<Buffer> a = Counter(), b = Counter();
  Bindings to_a, to_b;
  to_a.o = {a.get(), 0, 4};
  to_b.o = {b.get(), 0, 4};
  const v1::LaunchRecipe recipe = Recipe("count", 1, 1, {BufferArg(v1::BUFFER_ROLE_O)});
  std::unique_ptr<Runnable> run_a = Bind(recipe, to_a).value(), run_b = Bind(recipe, to_b).value();
  Runnable* both[] = {run_a.get(), run_b.get()};
  ASSERT_TRUE(device_->TimeHot(both, 5).ok());
  EXPECT_EQ(ReadCounter(*a), 1 + 3 + 3);  // by itself, warming up, timed
  EXPECT_EQ(ReadCounter(*b), 1 + 2 + 2);
  ASSERT_TRUE(device_->TimeHot(both, 5).ok());
  EXPECT_EQ(ReadCounter(*a), 7 + 3);
  EXPECT_EQ(ReadCounter(*b), 5 + 2);
}

TEST_F(CudaDeviceGpuTest, TimesColdWithoutTheFlush) {
  OPEN_OR_SKIP();
  std::unique_ptr<Runnable> spin = Spin(20'000);
  HotUs(*spin, 1000);
  const double hot_us = HotUs(*spin, 100);
  EXPECT_NEAR(device_->TimeCold(*spin).value() * 1e6, hot_us, 6);
  EXPECT_GT(device_->ColdResolution(), absl::ZeroDuration());
  EXPECT_LE(device_->ColdResolution(), absl::Microseconds(1));
}

TEST_F(CudaDeviceGpuTest, FindsNothingInL2WhenCold) {
  OPEN_OR_SKIP();
  const int64_t bytes = device_->info().l2_bytes() / 4;
  std::unique_ptr<Buffer> data = device_->Allocate(static_cast<size_t>(bytes)).value(), out = Counter();
  Bindings bindings;
  bindings.q = {data.get(), 0, static_cast<size_t>(bytes)};
  bindings.o = {out.get(), 0, 4};
  std::unique_ptr<Runnable> read =
      Bind(Recipe("read", 2 * device_->info().compute_units(), 512,
                  {BufferArg(v1::BUFFER_ROLE_Q), I64(bytes / 4), BufferArg(v1::BUFFER_ROLE_O)}),
           bindings)
          .value();
  const double hot_us = HotUs(*read, 100);
  EXPECT_GT(device_->TimeCold(*read).value() * 1e6, 1.2 * hot_us);
}

TEST_F(CudaDeviceGpuTest, RefusesMoreSharedMemoryThanThereIs) {
  OPEN_OR_SKIP();
  const int64_t most = device_->info().shared_bytes_per_block();
  std::unique_ptr<Buffer> out = Counter();
  Bindings bindings;
  bindings.o = {out.get(), 0, 4};
  EXPECT_TRUE(Bind(Recipe("shared", 1, 64, {BufferArg(v1::BUFFER_ROLE_O)}, most), bindings).ok());
  const absl::Status status =
      Bind(Recipe("shared", 1, 64, {BufferArg(v1::BUFFER_ROLE_O)}, most + 1), bindings).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("shared memory"));
}

TEST_F(CudaDeviceGpuTest, RefusesMoreThreadsThanThereAre) {
  OPEN_OR_SKIP();
  EXPECT_EQ(Bind(Recipe("spin", 1, 1025, {I64(1)})).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudaDeviceGpuTest, RefusesARecipeThatDoesNotFitTheCode) {
  OPEN_OR_SKIP();
  for (const v1::LaunchRecipe& recipe :
       {v1::LaunchRecipe(), Recipe("absent", 1, 1, {}), Recipe("spin", 0, 1, {I64(1)}), Recipe("spin", 1, 1, {}),
        Recipe("spin", 1, 1, {I32(1)}), Recipe("spin", 1, 1, {I64(1), I64(1)}),
        Recipe("count", 1, 1, {BufferArg(v1::BUFFER_ROLE_SCRATCH)})}) {
    EXPECT_EQ(Bind(recipe).status().code(), absl::StatusCode::kInvalidArgument) << recipe.ShortDebugString();
  }
}

TEST_F(CudaDeviceGpuTest, RefusesArtifactsOfOtherDevices) {
  OPEN_OR_SKIP();
  const std::string other = device_->info().compute_capability() == 75 ? "sm_80" : "sm_75";
  EXPECT_EQ(device_->Load(Compile(other)).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<char> text = {'n', 'o', ' ', 'P', 'T', 'X'};
  EXPECT_EQ(device_->Load(Bytes(text)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaDeviceGpuTest, SaysWhenMemoryIsFull) {
  OPEN_OR_SKIP();
  const auto more = static_cast<size_t>(device_->info().memory_bytes()) + 1;
  EXPECT_EQ(device_->Allocate(more).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CudaDeviceGpuTest, RunsPtxUnderTheLimitsOfAnEmulatedDevice) {
  OPEN_OR_SKIP("l4");
  const v1::Device& info = device_->info();
  EXPECT_EQ(info.target(), "compute_89");
  EXPECT_EQ(info.compute_capability(), 89);
  EXPECT_EQ(info.shared_bytes_per_block(), 101'376);
  EXPECT_THAT(info.model(), HasSubstr(" as l4"));
  std::unique_ptr<Buffer> out = Counter();
  Bindings bindings;
  bindings.o = {out.get(), 0, 4};
  auto runnable = Bind(Recipe("shared", 1, 64, {BufferArg(v1::BUFFER_ROLE_O)}, 101'376), bindings);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  ASSERT_TRUE((*runnable)->Run().ok());
  EXPECT_EQ(ReadCounter(*out), 63);
  EXPECT_EQ(Bind(Recipe("shared", 1, 64, {BufferArg(v1::BUFFER_ROLE_O)}, 101'377), bindings).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudaDeviceGpuTest, OpensAgainAfterItWasReleased) {
  OPEN_OR_SKIP();
  module_.reset();
  device_.reset();
  ASSERT_TRUE(Open());
  EXPECT_TRUE(Spin(10)->Run().ok());
}

TEST_F(CudaDeviceGpuTest, ReportsAnIllegalAddressAsAborted) {
  OPEN_OR_SKIP();
  module_.reset();
  device_.reset();
  // In a process of its own: the fault is the end of its context.
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto fault = [this] {
    if (!Open()) std::exit(1);
    const absl::Status status = Bind(Recipe("out_of_bounds", 1, 1, {})).value()->Run();
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::quick_exit(absl::IsAborted(status) ? 0 : 1);
  };
  EXPECT_EXIT(fault(), ::testing::ExitedWithCode(0), "CUDA_ERROR_ILLEGAL_ADDRESS");
}

}  // namespace
}  // namespace attune::device
