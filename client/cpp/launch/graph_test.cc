// Captured launches, which the fake driver computes: one graph, other lengths.
#include <atomic>
#include <bit>
#include <cmath>
#include <thread>

#include "client/cpp/launch/gpu.h"
#include "client/cpp/launch/runtime.h"
#include "client/cpp/launch/testing/answers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using ::testing::SizeIs;

constexpr Shape kDecodeShape = {.batch = 2, .seq_q = 1, .seq_kv = 8};
constexpr int kDim = 64;
constexpr int kPage = 4;

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t ToBf16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

// Key j of sequence b has the value 10 b + j everywhere, and every logit is 0: the output is the mean of the values.
struct Decode {
  alignas(16) uint16_t q[2][kDim] = {};
  alignas(16) uint16_t k[4][kPage][kDim] = {};
  alignas(16) uint16_t v[4][kPage][kDim] = {};
  alignas(16) uint16_t o[2][kDim] = {};
  int32_t lengths[2] = {1, 1};
  int32_t table[2][2] = {{3, 1}, {0, 2}};

  Decode() {
    for (int b = 0; b < 2; ++b) {
      for (int key = 0; key < 8; ++key) {
        for (uint16_t& value : v[table[b][key / kPage]][key % kPage]) value = ToBf16(10.F * b + key);
      }
    }
  }
  Tensors tensors() {
    const auto at = [](auto* pointer) { return reinterpret_cast<Address>(pointer); };
    return {.q = at(q), .k = at(k), .v = at(v), .o = at(o), .seqused_k = at(lengths), .block_table = at(table)};
  }
  // The mean of 0 .. n - 1 above 10 b; NaN is wrong.
  bool IsRight() const {
    for (int b = 0; b < 2; ++b) {
      if (!(std::abs(FromBf16(o[b][0]) - (10 * b + (lengths[b] - 1) / 2.0)) <= 0.1)) return false;
    }
    return true;
  }
};

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    gpu_ = *Gpu::Open(0);
    runtime_ = *Runtime::Open({});
    ASSERT_EQ(runtime_->Load(testing::PlainPaged("b2.h1.q1.kv8.d64.bf16.page4")), absl::OkStatus());
    attention_ = *runtime_->Prepare(*ParseProblem("b1.h1.q1.d64.bf16.page4"));
  }
  cuda::GraphExecHandle Capture(Decode& decode, int launches = 1) {
    const CurrentContext context(*gpu_);
    const cuda::DriverApi& driver = gpu_->driver();
    EXPECT_EQ(driver.StreamBeginCapture(testing::kStreamOfATest, cuda::kCaptureThreadLocal), cuda::kSuccess);
    for (int i = 0; i < launches; ++i) {
      EXPECT_EQ(attention_->Run(testing::kStreamOfATest, decode.tensors(), kDecodeShape), absl::OkStatus());
    }
    cuda::GraphHandle graph = nullptr;
    cuda::GraphExecHandle executable = nullptr;
    EXPECT_EQ(driver.StreamEndCapture(testing::kStreamOfATest, &graph), cuda::kSuccess);
    EXPECT_EQ(driver.GraphInstantiateWithFlags(&executable, graph, 0), cuda::kSuccess);
    driver.GraphDestroy(graph);
    return executable;
  }

  std::shared_ptr<const Gpu> gpu_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Attention> attention_;
};

TEST_F(GraphTest, OneGraphServesEveryLength) {
  Decode decode;
  const cuda::GraphExecHandle executable = Capture(decode);
  EXPECT_THAT(fake::TakeLaunched(), SizeIs(0));
  for (int length = 1; length <= 8; ++length) {
    decode.lengths[0] = length;
    decode.lengths[1] = 9 - length;
    gpu_->driver().GraphLaunch(executable, testing::kStreamOfATest);
    EXPECT_TRUE(decode.IsRight()) << length;
  }
  gpu_->driver().GraphExecDestroy(executable);
}

TEST_F(GraphTest, AGraphAndLaunchesOnItsStreamHaveScratchOfTheirOwn) {
  Decode captured, eager;
  const cuda::GraphExecHandle executable = Capture(captured);
  ASSERT_EQ(attention_->Run(testing::kStreamOfATest, eager.tensors(), kDecodeShape), absl::OkStatus());
  const std::string eagers = fake::TakeLaunched()[0].parameters[3];
  gpu_->driver().GraphLaunch(executable, testing::kStreamOfATest);
  EXPECT_NE(fake::TakeLaunched()[0].parameters[3], eagers);
  EXPECT_TRUE(captured.IsRight() && eager.IsRight());
  gpu_->driver().GraphExecDestroy(executable);
}

TEST_F(GraphTest, LaunchesOfOneGraphShareItsScratch) {
  Decode decode;
  const cuda::GraphExecHandle executable = Capture(decode, 3);
  EXPECT_THAT(fake::Allocations(), SizeIs(2));  // what must be zero, and the rest
  gpu_->driver().GraphLaunch(executable, testing::kStreamOfATest);
  EXPECT_TRUE(decode.IsRight());
  gpu_->driver().GraphExecDestroy(executable);
}

TEST_F(GraphTest, APlanIsCapturedInTheCallersScratch) {
  Decode decode;
  const auto plan = attention_->Find(kDecodeShape);
  ASSERT_TRUE(plan.ok()) << plan.status();
  alignas(256) static char scratch[4096] = {};
  ASSERT_LE((*plan)->scratch_bytes(), sizeof scratch);
  gpu_->driver().StreamBeginCapture(testing::kStreamOfATest, cuda::kCaptureThreadLocal);
  EXPECT_EQ((*plan)->Enqueue(decode.tensors(), testing::kStreamOfATest, reinterpret_cast<Address>(scratch)),
            absl::OkStatus());
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle executable = nullptr;
  gpu_->driver().StreamEndCapture(testing::kStreamOfATest, &graph);
  gpu_->driver().GraphInstantiateWithFlags(&executable, graph, 0);
  for (const int length : {5, 2}) {
    decode.lengths[0] = length;
    gpu_->driver().GraphLaunch(executable, testing::kStreamOfATest);
    EXPECT_TRUE(decode.IsRight()) << length;
  }
  EXPECT_THAT(fake::Allocations(), SizeIs(0));
  gpu_->driver().GraphExecDestroy(executable);
  gpu_->driver().GraphDestroy(graph);
}

TEST_F(GraphTest, AnInvalidatedCaptureIsAnError) {
  Decode decode;
  fake::Fail("cuStreamGetCaptureInfo_v2", cuda::kInvalidValue);
  gpu_->driver().StreamBeginCapture(testing::kStreamOfATest, cuda::kCaptureThreadLocal);
  EXPECT_EQ(attention_->Run(testing::kStreamOfATest, decode.tensors(), kDecodeShape).code(),
            absl::StatusCode::kInternal);
  cuda::GraphHandle graph = nullptr;
  gpu_->driver().StreamEndCapture(testing::kStreamOfATest, &graph);
  gpu_->driver().GraphDestroy(graph);
}

TEST_F(GraphTest, ThreadsOnOneStreamDoNotComeBetweenTwoLaunches) {
  constexpr int kThreads = 4, kRuns = 100;
  std::vector<Decode> decodes(kThreads);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (Decode& decode : decodes) {
    threads.emplace_back([this, &decode, &wrong] {
      for (int i = 0; i < kRuns; ++i) {
        decode.lengths[0] = 1 + i % 8;
        wrong +=
            attention_->Run(testing::kStreamOfATest, decode.tensors(), kDecodeShape).ok() && decode.IsRight() ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(fake::TakeLaunched(), SizeIs(2 * kThreads * kRuns));
}

}  // namespace
}  // namespace attune::launch
