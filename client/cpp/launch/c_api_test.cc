#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "client/cpp/launch/attune_launch.h"
#include "client/cpp/launch/testing/answers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr attune_shape kShapeInC = {1, 1, 100};
constexpr attune_tensors kTensorsInC = {0x1000, 0x2000, 0x3000, 0x4000, 0, 0, 0, 0, 0, 0, 0, 0};

attune_runtime_options OptionsOfSize(size_t struct_size) {
  attune_runtime_options options = {};
  options.struct_size = struct_size;
  return options;
}

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    Open({});
  }
  void TearDown() override { Close(); }
  void Close() {
    attune_attention_close(std::exchange(attention_, nullptr));
    attune_runtime_close(std::exchange(runtime_, nullptr));
  }
  void Open(attune_runtime_options options) {
    Close();
    options.struct_size = sizeof options;
    ASSERT_EQ(attune_runtime_open(&options, &runtime_), ATTUNE_OK) << attune_error_message();
    ASSERT_EQ(attune_attention_open(runtime_, "b1.h2.q1.kv1.d64.f16", &attention_), ATTUNE_OK);
  }
  void Load(const v1::GetBestResponse& answer) {
    const std::string bytes = answer.SerializeAsString();
    ASSERT_EQ(attune_runtime_load(runtime_, bytes.data(), bytes.size()), ATTUNE_OK) << attune_error_message();
  }

  attune_runtime* runtime_ = nullptr;
  attune_attention* attention_ = nullptr;
};

TEST_F(CApi, RunsALoadedAnswer) {
  Load(testing::OneLaunch("b1.h2.q1.kv100.d64.f16", 7));
  ASSERT_EQ(attune_run(attention_, nullptr, &kTensorsInC, &kShapeInC), ATTUNE_OK) << attune_error_message();
  EXPECT_THAT(fake::TakeLaunched(), SizeIs(1));
}

TEST_F(CApi, WithoutAnAnswerRunIsUnavailableAndSaysWhy) {
  EXPECT_EQ(attune_run(attention_, nullptr, &kTensorsInC, &kShapeInC), ATTUNE_UNAVAILABLE);
  EXPECT_THAT(attune_error_message(), HasSubstr("b1.h2.q1.kv100.d64.f16"));
  EXPECT_EQ(attune_warm(attention_, &kShapeInC, 1, 30'000), ATTUNE_UNAVAILABLE);
  EXPECT_THAT(attune_error_message(), HasSubstr("neither a server nor a snapshot was given"));
}

TEST_F(CApi, EnqueuesAPlanInTheCallersScratch) {
  Load(testing::TwoLaunches("b1.h2.q1.kv100.d64.f16", 1000, 4));
  attune_plan* plan = nullptr;
  ASSERT_EQ(attune_plan_open(attention_, &kShapeInC, &plan), ATTUNE_OK);
  size_t scratch = 0, zeroed = 0;
  ASSERT_EQ(attune_plan_scratch(plan, &scratch, &zeroed), ATTUNE_OK);
  EXPECT_EQ(scratch, 1280);
  EXPECT_EQ(zeroed, 256);
  EXPECT_EQ(attune_plan_enqueue(plan, nullptr, &kTensorsInC, 0x10000), ATTUNE_OK);
  EXPECT_EQ(attune_plan_enqueue(plan, nullptr, &kTensorsInC, 0x10001), ATTUNE_INVALID_ARGUMENT);
  attune_plan_close(plan);
  EXPECT_THAT(fake::TakeLaunched(), SizeIs(2));
}

TEST_F(CApi, ScratchComesFromTheCallersAllocator) {
  struct Memory {
    alignas(256) char bytes[2][1 << 16];
    int allocated = 0, freed = 0;
  };
  const auto memory = std::make_unique<Memory>();
  attune_runtime_options options = {};
  options.scratch_allocator.user = memory.get();
  options.scratch_allocator.allocate = [](void* user, size_t /*bytes*/, void* /*stream*/) -> uint64_t {
    auto* memory = static_cast<Memory*>(user);
    return memory->allocated == 2 ? 0 : reinterpret_cast<uint64_t>(memory->bytes[memory->allocated++]);
  };
  options.scratch_allocator.free = [](void* user, uint64_t, size_t, void*) { ++static_cast<Memory*>(user)->freed; };
  Open(options);
  Load(testing::TwoLaunches("b1.h2.q1.kv100.d64.f16", 1000, 4));
  EXPECT_EQ(attune_run(attention_, nullptr, &kTensorsInC, &kShapeInC), ATTUNE_OK) << attune_error_message();
  EXPECT_EQ(attune_run(attention_, &runtime_, &kTensorsInC, &kShapeInC), ATTUNE_RESOURCE_EXHAUSTED);
  EXPECT_THAT(attune_error_message(), HasSubstr("scratch_allocator.allocate returned 0"));
  Close();
  EXPECT_EQ(memory->freed, 2);
  EXPECT_EQ(fake::Calls("cuMemAlloc_v2"), 0);
}

TEST_F(CApi, AnExceptionOfTheCallersAllocatorIsAStatus) {
  attune_runtime_options options = {};
  for (const bool of_memory : {true, false}) {
    options.scratch_allocator.allocate = of_memory ? [](void*, size_t, void*) -> uint64_t { throw std::bad_alloc(); }
                                                   : [](void*, size_t, void*) -> uint64_t { throw 7; };
    Open(options);
    Load(testing::TwoLaunches("b1.h2.q1.kv100.d64.f16", 1000, 4));
    const attune_status status = of_memory ? ATTUNE_RESOURCE_EXHAUSTED : ATTUNE_INTERNAL;
    for (int i = 0; i < 2; ++i) {  // the second meets no lock of the first
      EXPECT_EQ(attune_run(attention_, nullptr, &kTensorsInC, &kShapeInC), status);
      EXPECT_THAT(attune_error_message(), HasSubstr(of_memory ? "out of memory" : "no std::exception"));
    }
  }
}

TEST_F(CApi, ACausalFormWithEqualLengthsKeepsItsAlignment) {
  attune_attention* attention = nullptr;
  ASSERT_EQ(attune_attention_open(runtime_, "b1.h2.q1.kv1.d64.f16.causal-br", &attention), ATTUNE_OK);
  Load(testing::OneLaunch("b1.h2.q1.kv100.d64.f16.causal-br"));
  EXPECT_EQ(attune_run(attention, nullptr, &kTensorsInC, &kShapeInC), ATTUNE_OK) << attune_error_message();
  attune_attention_close(attention);
}

TEST_F(CApi, NullsAndWrongTextsAreNamed) {
  attune_attention* attention = nullptr;
  EXPECT_EQ(attune_attention_open(runtime_, "b1.h2", &attention), ATTUNE_INVALID_ARGUMENT);
  EXPECT_THAT(attune_error_message(), HasSubstr("b1.h2"));
  EXPECT_EQ(attune_run(attention_, nullptr, nullptr, &kShapeInC), ATTUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(attune_error_message(), "tensors is null");
  EXPECT_EQ(attune_runtime_load(runtime_, "\xff", 1), ATTUNE_INVALID_ARGUMENT);
  const attune_runtime_options options = OptionsOfSize(4);
  attune_runtime* runtime = nullptr;
  EXPECT_EQ(attune_runtime_open(&options, &runtime), ATTUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(attune_error_message(), "struct_size is 4; it must be sizeof(attune_runtime_options)");
}

TEST_F(CApi, OptionsOfAnOlderHeaderAreTakenAsFarAsTheyGo) {
  attune_runtime_options options = OptionsOfSize(offsetof(attune_runtime_options, device));
  options.device = 5;  // not there in that header
  attune_runtime* runtime = nullptr;
  EXPECT_EQ(attune_runtime_open(&options, &runtime), ATTUNE_OK) << attune_error_message();
  attune_runtime_close(runtime);
}

}  // namespace
}  // namespace attune::launch
