// Answers that hold for lengths in a range: launched without being asked for.
#include "client/cpp/launch/ranges.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/runtime.h"
#include "client/cpp/launch/testing/answers.h"
#include "client/cpp/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using testing::FakeAnswers;

constexpr char kTuned[] = "b1.h2.q1.kv100.d64.f16";
constexpr Shape kTunedShape = {.batch = 1, .seq_q = 1, .seq_kv = 100};

// The answer to kTuned, which holds for kv `low` to `high`; its mark is `factor` times the length.
v1::GetBestResponse InRange(int64_t low, int64_t high, int64_t factor = 1) {
  v1::GetBestResponse answer = testing::OneLaunch(kTuned, static_cast<int>(100 * factor));
  v1::Domain& domain = *answer.add_domains();
  domain.set_axis(v1::Domain::AXIS_KV);
  domain.set_low(low);
  domain.set_high(high);
  v1::Varying& mark = *domain.add_varying();
  mark.set_field(v1::Varying::FIELD_ARG);
  mark.set_index(4);
  mark.mutable_step()->set_slope(factor);
  mark.mutable_step()->set_divide(1);
  return answer;
}

class RangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    Serve(InRange(50, 200));
    Open({});
  }
  void Open(RuntimeOptions options) {
    attention_.reset();
    runtime_ = *Runtime::Open(std::move(options), std::make_unique<FakeAnswers>(served_));
    attention_ = *runtime_->Prepare(*ParseProblem("b1.h2.q1.kv2.d64.f16"));
    ASSERT_EQ(attention_->Warm(absl::MakeConstSpan(&kTunedShape, 1), testing::kSoon), absl::OkStatus());
  }
  void Serve(absl::StatusOr<v1::GetBestResponse> answer) {
    const std::lock_guard lock(served_->mutex);
    served_->answers.insert_or_assign(kTuned, std::move(answer));
  }
  void Refresh() {
    runtime_->Refresh();
    ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  }
  int Questions() {
    const std::lock_guard lock(served_->mutex);
    return served_->questions;
  }
  // The mark of what a run at this length launches; -1 when there is no kernel.
  int MarkAt(int64_t length, int64_t batch = 1) {
    const Shape shape = {.batch = batch, .seq_q = 1, .seq_kv = length};
    const absl::Status status = attention_->Run(testing::kStreamOfATest, testing::kTensorsOfATest, shape);
    if (!status.ok()) return absl::IsUnavailable(status) ? -1 : -2;
    int mark = -3;
    std::memcpy(&mark, fake::TakeLaunched().back().parameters[4].data(), sizeof mark);
    return mark;
  }

  std::shared_ptr<FakeAnswers::Served> served_ = std::make_shared<FakeAnswers::Served>();
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Attention> attention_;
};

TEST_F(RangesTest, EveryLengthInARangeIsLaunchedAtOnceAndAsksNobody) {
  const int questions = Questions();
  for (const int length : {50, 99, 101, 150, 200}) EXPECT_EQ(MarkAt(length), length);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  EXPECT_EQ(Questions(), questions);
}

TEST_F(RangesTest, ALengthOrABatchOutsideIsAskedFor) {
  EXPECT_EQ(MarkAt(49), -1);
  EXPECT_EQ(MarkAt(201), -1);
  EXPECT_EQ(MarkAt(150, /*batch=*/2), -1);
}

TEST_F(RangesTest, AnotherAnswerIsLaunchedAtEveryLengthOfItsRange) {
  EXPECT_EQ(MarkAt(150), 150);
  Serve(InRange(50, 200, 2));
  Refresh();
  EXPECT_EQ(MarkAt(150), 300);
}

TEST_F(RangesTest, AKernelThatIsServedNoMoreIsLaunchedAtNoLength) {
  EXPECT_EQ(MarkAt(150), 150);
  Serve(absl::NotFoundError("rolled back"));
  Refresh();
  EXPECT_EQ(MarkAt(150), -1);
}

TEST_F(RangesTest, ALengthThatTheRangeLosesIsAskedFor) {
  EXPECT_EQ(MarkAt(150), 150);
  Serve(InRange(50, 120));
  Refresh();
  EXPECT_EQ(MarkAt(110), 110);
  EXPECT_EQ(MarkAt(150), -1);
}

TEST_F(RangesTest, ARollBackIsNoticedWhileOtherLengthsAreLaunched) {
  Open({.revalidate = absl::Milliseconds(1)});
  EXPECT_EQ(MarkAt(150), 150);
  Serve(InRange(50, 200, 2));
  const absl::Time end = absl::Now() + testing::kSoon;
  while (MarkAt(150) != 300 && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(MarkAt(150), 300);
}

TEST_F(RangesTest, ARangeThatDoesNotFitItsRecipeIsNotUsed) {
  v1::GetBestResponse answer = InRange(50, 200);
  answer.mutable_domains(0)->mutable_varying(0)->set_index(9);
  Serve(answer);
  Refresh();
  EXPECT_EQ(MarkAt(150), -1);
  EXPECT_EQ(MarkAt(100), 100);
}

TEST_F(RangesTest, ALoadedAnswerHoldsForItsRange) {
  attention_.reset();
  runtime_ = *Runtime::Open({});
  attention_ = *runtime_->Prepare(*ParseProblem("b1.h2.q1.kv2.d64.f16"));
  ASSERT_EQ(runtime_->Load(InRange(50, 200)), absl::OkStatus());
  EXPECT_EQ(MarkAt(150), 150);
}

TEST_F(RangesTest, ASnapshotsAnswerHoldsForItsRange) {
  const std::string path = ::testing::TempDir() + "/launch_ranges_test.snapshot";
  v1::ListDevicesResponse devices;
  v1::Device& device = *devices.add_devices();
  device.set_id("cuda:0");
  device.set_backend(v1::BACKEND_CUDA);
  device.set_model(fake::kFakeModel);
  SnapshotAnswer entry;
  *entry.request.mutable_problem() = ToProto(*ParseProblem(kTuned));
  entry.request.set_device_id("cuda:0");
  entry.request.set_policy(v1::POLICY_HOT);
  entry.answer = std::make_shared<const v1::GetBestResponse>(InRange(50, 200));
  ASSERT_TRUE(Snapshot(absl::Now(), devices, {entry}).Write(path).ok());
  attention_.reset();
  runtime_ = *Runtime::Open({.snapshot = path});
  attention_ = *runtime_->Prepare(*ParseProblem("b1.h2.q1.kv2.d64.f16"));
  const Shape shape = {.batch = 1, .seq_q = 1, .seq_kv = 150};
  ASSERT_EQ(attention_->Warm(absl::MakeConstSpan(&shape, 1), testing::kSoon), absl::OkStatus());
  EXPECT_EQ(MarkAt(150), 150);
}

TEST_F(RangesTest, ThreadsMayRunEveryLengthWhileTheAnswerChanges) {
  std::atomic<int> failed = 0;
  std::vector<std::jthread> threads;
  for (uintptr_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 1500; ++i) {
        const Shape shape = {.batch = 1, .seq_q = 1, .seq_kv = 50 + i % 150};
        const absl::Status status =
            attention_->Run(reinterpret_cast<Stream>(16 * thread), testing::kTensorsOfATest, shape);
        failed += status.ok() || absl::IsUnavailable(status) ? 0 : 1;
        if (i % 300 == 0) {
          Serve(InRange(50, 200, 1 + i % 7));
          runtime_->Refresh();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failed, 0);
  ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  Serve(InRange(50, 200, 3));
  Refresh();
  for (int length = 50; length <= 200; ++length) EXPECT_EQ(MarkAt(length), 3 * length);
}

}  // namespace
}  // namespace attune::launch
