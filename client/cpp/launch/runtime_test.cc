#include "client/cpp/launch/runtime.h"

#include <atomic>
#include <thread>

#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/gpu.h"
#include "client/cpp/launch/testing/answers.h"
#include "client/cpp/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using testing::FakeAnswers;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kTensorsOfATest;
using testing::OneLaunch;
using ::testing::SizeIs;
using testing::TwoLaunches;
using ::testing::UnorderedElementsAre;

std::string TextAt(int64_t length) { return absl::StrCat("b1.h2.q1.kv", length, ".d64.f16"); }
Shape ShapeAt(int64_t length) { return {.batch = 1, .seq_q = 1, .seq_kv = length}; }

class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    Open({});
  }
  void Open(RuntimeOptions options) {
    attention_.reset();
    runtime_ = *Runtime::Open(std::move(options), std::make_unique<FakeAnswers>(served_));
    attention_ = *runtime_->Prepare(*ParseProblem("b1.h2.q1.kv2.d64.f16"));
  }
  void Serve(const v1::GetBestResponse& answer) {
    const std::lock_guard lock(served_->mutex);
    served_->answers[ToText(*FromProto(answer.problem()))] = answer;
  }
  void Block(bool blocked) {
    const std::lock_guard lock(served_->mutex);
    served_->blocked = blocked;
    served_->changed.notify_all();
  }
  absl::Status Run(int64_t length) {
    return attention_->Run(testing::kStreamOfATest, kTensorsOfATest, ShapeAt(length));
  }

  std::shared_ptr<FakeAnswers::Served> served_ = std::make_shared<FakeAnswers::Served>();
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Attention> attention_;
};

TEST_F(RuntimeTest, RunReturnsUnavailableAtOnceAndLaunchesOnceTheAnswerIsThere) {
  Serve(OneLaunch(TextAt(100)));
  Block(true);  // Run would wait for ever if it asked
  EXPECT_EQ(Run(100).code(), absl::StatusCode::kUnavailable);
  Block(false);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  EXPECT_EQ(Run(100), absl::OkStatus());
  EXPECT_THAT(fake::TakeLaunched(), SizeIs(1));
}

TEST_F(RuntimeTest, AShapeIsAskedForOnceHoweverOftenItIsRun) {
  Serve(OneLaunch(TextAt(100)));
  Block(true);
  for (int i = 0; i < 10; ++i) (void)Run(100);
  Block(false);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Run(100), absl::OkStatus());
  EXPECT_EQ(served_->questions, 2);  // without its code, then with it
}

TEST_F(RuntimeTest, WarmHasAllShapesLoaded) {
  for (const int64_t length : {100, 200, 300}) Serve(OneLaunch(TextAt(length)));
  const Shape shapes[] = {ShapeAt(100), ShapeAt(200), ShapeAt(300)};
  ASSERT_EQ(attention_->Warm(shapes, testing::kSoon), absl::OkStatus());
  const int questions = served_->questions;
  for (const int64_t length : {100, 200, 300}) EXPECT_EQ(Run(length), absl::OkStatus());
  EXPECT_EQ(served_->questions, questions);
  EXPECT_EQ(served_->with_code, 1);  // the same artifact
}

TEST_F(RuntimeTest, WarmSaysWhichShapeHasNoKernel) {
  Serve(OneLaunch(TextAt(100)));
  const Shape shapes[] = {ShapeAt(100), ShapeAt(200)};
  const absl::Status status = attention_->Warm(shapes, testing::kSoon);
  EXPECT_EQ(status, absl::UnavailableError("no kernel for b1.h2.q1.kv200.d64.f16 yet: nobody has tuned it"));
}

TEST_F(RuntimeTest, WarmWaitsNoLongerThanItWasTold) {
  Block(true);
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_EQ(attention_->Warm(shapes, absl::Milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  Block(false);
}

TEST_F(RuntimeTest, WarmWaitsForItsOwnShapesAlone) {
  ASSERT_EQ(runtime_->Load(OneLaunch(TextAt(100))), absl::OkStatus());
  Block(true);
  (void)Run(200);
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_EQ(attention_->Warm(shapes, absl::Milliseconds(1)), absl::OkStatus());
  Block(false);
}

TEST_F(RuntimeTest, WarmMayWaitForEver) {
  Serve(OneLaunch(TextAt(100)));
  Block(true);
  const std::jthread unblocks([this] { Block(false); });
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_EQ(attention_->Warm(shapes, absl::InfiniteDuration()), absl::OkStatus());
}

TEST_F(RuntimeTest, AShapeWithoutAnAnswerIsAskedForAgainAfterTheHold) {
  Open({.hold = absl::Milliseconds(1)});
  const absl::Time end = absl::Now() + testing::kSoon;
  (void)Run(100);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  Serve(OneLaunch(TextAt(100)));
  while (!Run(100).ok() && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(Run(100), absl::OkStatus());
}

TEST_F(RuntimeTest, WithinTheHoldNobodyIsAskedAgain) {
  (void)Run(100);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  for (int i = 0; i < 100; ++i) (void)Run(100);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  EXPECT_EQ(served_->questions, 1);
}

TEST_F(RuntimeTest, CodeThatIsBeingCompiledIsWaitedFor) {
  v1::GetBestResponse answer = OneLaunch(TextAt(100));
  answer.set_artifact_state(v1::ARTIFACT_STATE_COMPILING);
  answer.clear_artifact_sha256();
  Serve(answer);
  (void)Run(100);
  {
    std::unique_lock lock(served_->mutex);
    served_->changed.wait(lock, [this] { return served_->questions >= 1; });
    served_->answers.insert_or_assign(TextAt(100), OneLaunch(TextAt(100)));
  }
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_EQ(attention_->Warm(shapes, testing::kSoon), absl::OkStatus());
}

TEST_F(RuntimeTest, AnAnswerWithoutCodeIsNoKernel) {
  v1::GetBestResponse answer = OneLaunch(TextAt(100));
  answer.clear_artifact_sha256();
  answer.set_artifact_reason("its compiler is gone");
  Serve(answer);
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_THAT(std::string(attention_->Warm(shapes, testing::kSoon).message()),
              HasSubstr("the answer has no code: its compiler is gone"));
}

TEST_F(RuntimeTest, WhatWasKeptAnswersWhenNobodyCanBeAsked) {
  served_->unreachable = absl::UnavailableError("connection refused");
  served_->kept[TextAt(100)] = OneLaunch(TextAt(100));
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_EQ(attention_->Warm(shapes, testing::kSoon), absl::OkStatus());
  const Shape others[] = {ShapeAt(200)};
  EXPECT_THAT(std::string(attention_->Warm(others, testing::kSoon).message()),
              HasSubstr("connection refused; not in the snapshot"));
}

TEST_F(RuntimeTest, AShapeThatIsNoProblemIsNamedAndNotAskedFor) {
  EXPECT_EQ(Run(0), absl::InvalidArgumentError("seq_kv is 0; it must be at least 1"));
  EXPECT_THAT(std::string(Run(int64_t{1} << 40).message()), HasSubstr("seq_kv is 1099511627776"));
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  EXPECT_EQ(served_->questions, 0);
}

TEST_F(RuntimeTest, AFormThatIsNoneIsNamed) {
  const absl::Status status = runtime_->Prepare({.heads_q = 8, .heads_kv = 3}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("heads_kv is 3"));
}

TEST_F(RuntimeTest, AnOptionThatIsWrongIsNamed) {
  EXPECT_EQ(Runtime::Open({.revalidate = absl::ZeroDuration()}).status(),
            absl::InvalidArgumentError("revalidate is 0; it must be at least 1ms"));
  EXPECT_THAT(std::string(Runtime::Open({.server = "nowhere"}).status().message()), HasSubstr("server is 'nowhere'"));
  EXPECT_EQ(Runtime::Open({.snapshot = "/no/such/file"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RuntimeTest, ALoadedAnswerIsUsedWithoutAskingAnybody) {
  ASSERT_EQ(runtime_->Load(OneLaunch(TextAt(100))), absl::OkStatus());
  EXPECT_EQ(Run(100), absl::OkStatus());
  runtime_->Refresh();
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  EXPECT_EQ(served_->questions, 0);
}

TEST_F(RuntimeTest, ALoadedAnswerStaysWhenAnEarlierQuestionIsAnswered) {
  for (const bool served : {true, false}) {
    Open({});
    if (served) Serve(OneLaunch(TextAt(100), 1));
    if (!served) served_->answers.clear();
    const int asked = served_->questions;
    Block(true);
    (void)Run(100);
    while (served_->waiting == 0) std::this_thread::yield();
    ASSERT_EQ(runtime_->Load(OneLaunch(TextAt(100), 2)), absl::OkStatus());
    Block(false);
    ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
    EXPECT_GT(served_->questions, asked);
    ASSERT_EQ(Run(100), absl::OkStatus());
    EXPECT_EQ(fake::TakeLaunched().back().parameters[4], std::string("\2\0\0\0", 4));
  }
}

TEST_F(RuntimeTest, ASnapshotAnswersWithoutAServer) {
  const std::string path = ::testing::TempDir() + "/launch_runtime_test.snapshot";
  v1::ListDevicesResponse devices;
  v1::Device& device = *devices.add_devices();
  device.set_id("cuda:5");
  device.set_backend(v1::BACKEND_CUDA);
  device.set_model(fake::kFakeModel);
  SnapshotAnswer entry;
  *entry.request.mutable_problem() = ToProto(*ParseProblem(TextAt(100)));
  entry.request.set_device_id("cuda:5");
  entry.request.set_policy(v1::POLICY_HOT);
  entry.answer = std::make_shared<const v1::GetBestResponse>(OneLaunch(TextAt(100)));
  ASSERT_TRUE(Snapshot(absl::Now(), devices, {entry}).Write(path).ok());
  attention_.reset();
  runtime_ = *Runtime::Open({.snapshot = path});
  attention_ = *runtime_->Prepare(*ParseProblem("b1.h2.q1.kv2.d64.f16"));
  const Shape shapes[] = {ShapeAt(100)};
  EXPECT_EQ(attention_->Warm(shapes, testing::kSoon), absl::OkStatus());
  EXPECT_EQ(Run(100), absl::OkStatus());
  const Shape others[] = {ShapeAt(200)};
  EXPECT_THAT(std::string(attention_->Warm(others, testing::kSoon).message()),
              HasSubstr("has no answer for b1.h2.q1.kv200"));
}

TEST_F(RuntimeTest, ALaunchUsesTheStreamsScratchAgain) {
  ASSERT_EQ(runtime_->Load(TwoLaunches(TextAt(100), 1000, 4)), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Run(100), absl::OkStatus());
  const std::vector<fake::Launched> launched = fake::TakeLaunched();
  ASSERT_THAT(launched, SizeIs(6));
  for (const fake::Launched& launch : launched) EXPECT_EQ(launch.parameters, launched[0].parameters);
  EXPECT_THAT(fake::Allocations(), SizeIs(2));
}

TEST_F(RuntimeTest, NothingIsLaunchedWithoutScratchMemory) {
  ASSERT_EQ(runtime_->Load(TwoLaunches(TextAt(100), 1000, 4)), absl::OkStatus());
  fake::Fail("cuMemAlloc_v2", cuda::kOutOfMemory);
  EXPECT_EQ(Run(100).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(fake::TakeLaunched(), IsEmpty());
  EXPECT_EQ(Run(100), absl::OkStatus());
}

TEST_F(RuntimeTest, ScratchComesFromTheAllocatorThatIsGiven) {
  class Counting : public ScratchAllocator {
   public:
    absl::StatusOr<Address> Allocate(size_t bytes, Stream stream) override {
      allocated.emplace_back(bytes, stream);
      return reinterpret_cast<Address>(memory.data() + 256 * 1024 * allocated.size()) / 256 * 256;
    }
    void Free(Address /*address*/, size_t bytes, Stream stream) override { freed.emplace_back(bytes, stream); }
    std::vector<char> memory = std::vector<char>(1 << 20);
    std::vector<std::pair<size_t, Stream>> allocated, freed;
  } allocator;
  Open({.scratch_allocator = &allocator});
  ASSERT_EQ(runtime_->Load(TwoLaunches(TextAt(100), 100'000, 4)), absl::OkStatus());
  ASSERT_EQ(Run(100), absl::OkStatus());
  EXPECT_THAT(allocator.allocated, UnorderedElementsAre(std::pair(131'072, testing::kStreamOfATest),
                                                        std::pair(65'536, testing::kStreamOfATest)));
  attention_.reset();
  runtime_.reset();
  EXPECT_THAT(allocator.freed, UnorderedElementsAre(std::pair(131'072, testing::kStreamOfATest),
                                                    std::pair(65'536, testing::kStreamOfATest)));
  EXPECT_EQ(fake::Calls("cuMemAlloc_v2"), 0);
}

TEST_F(RuntimeTest, FreesItsScratchWhenItIsDestroyed) {
  ASSERT_EQ(runtime_->Load(TwoLaunches(TextAt(100), 1000, 4)), absl::OkStatus());
  ASSERT_EQ(Run(100), absl::OkStatus());
  attention_.reset();
  runtime_.reset();
  EXPECT_THAT(fake::Allocations(), IsEmpty());
}

TEST_F(RuntimeTest, FreesItsScratchWhileAnotherThreadCaptures) {
  ASSERT_EQ(runtime_->Load(TwoLaunches(TextAt(100), 1000, 4)), absl::OkStatus());
  ASSERT_EQ(Run(100), absl::OkStatus());
  const std::shared_ptr<const Gpu> gpu = *Gpu::Open(0);
  const Stream captured = reinterpret_cast<Stream>(0x90);
  ASSERT_EQ(gpu->driver().StreamBeginCapture(captured, cuda::kCaptureThreadLocal), cuda::kSuccess);
  attention_.reset();
  runtime_.reset();
  EXPECT_THAT(fake::Allocations(), IsEmpty());
  cuda::GraphHandle graph = nullptr;
  gpu->driver().StreamEndCapture(captured, &graph);
  gpu->driver().GraphDestroy(graph);
}

TEST_F(RuntimeTest, ASecondDevicesKernelsAreLaunchedInItsContext) {
  fake::SetDeviceCount(2);
  Open({.device = 1});
  ASSERT_EQ(runtime_->Load(OneLaunch(TextAt(100))), absl::OkStatus());
  EXPECT_EQ(Run(100), absl::OkStatus());
  EXPECT_EQ(fake::TakeLaunched()[0].device, 1);
  EXPECT_THAT(runtime_->device().uuid(), ::testing::EndsWith("1"));
}

TEST_F(RuntimeTest, ManyThreadsMayRunAndBeAnsweredAtOnce) {
  std::vector<Shape> warm;
  for (int64_t length = 1; length <= 50; ++length) {
    Serve(OneLaunch(TextAt(length), static_cast<int>(length)));
    if (length <= 25) warm.push_back(ShapeAt(length));
  }
  ASSERT_EQ(attention_->Warm(warm, testing::kSoon), absl::OkStatus());
  std::atomic<int> launched = 0, failed = 0;
  std::vector<std::jthread> threads;
  for (uintptr_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 2000; ++i) {
        const absl::Status status =
            attention_->Run(reinterpret_cast<Stream>(16 * thread), kTensorsOfATest, ShapeAt(1 + i % 50));
        if (status.ok()) ++launched;
        if (!status.ok() && !absl::IsUnavailable(status)) ++failed;
        if (i % 500 == 0) runtime_->Refresh();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_GE(launched, 4 * 1000);  // half of the shapes were known from the start
  EXPECT_EQ(fake::TakeLaunched().size(), launched);
}

}  // namespace
}  // namespace attune::launch
