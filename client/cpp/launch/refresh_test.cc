// What reaches a running process of what the server serves now.
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/runtime.h"
#include "client/cpp/launch/testing/answers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using testing::FakeAnswers;
using testing::OneLaunch;

constexpr char kServed[] = "b1.h2.q1.kv100.d64.f16";
constexpr Shape kServedShape = {.batch = 1, .seq_q = 1, .seq_kv = 100};

class RefreshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    Serve(OneLaunch(kServed, 1));
    Open({});
  }
  void Open(RuntimeOptions options) {
    attention_.reset();
    runtime_ = *Runtime::Open(std::move(options), std::make_unique<FakeAnswers>(served_));
    attention_ = *runtime_->Prepare(*ParseProblem("b1.h2.q1.kv2.d64.f16"));
    ASSERT_EQ(attention_->Warm(absl::MakeConstSpan(&kServedShape, 1), testing::kSoon), absl::OkStatus());
  }
  void Serve(absl::StatusOr<v1::GetBestResponse> answer) {
    const std::lock_guard lock(served_->mutex);
    served_->answers.insert_or_assign(kServed, std::move(answer));
  }
  void SetUnreachable(const absl::Status& status) {
    const std::lock_guard lock(served_->mutex);
    served_->unreachable = status;
  }
  void Refresh() {
    runtime_->Refresh();
    ASSERT_TRUE(runtime_->WaitUntilIdle(testing::kSoon));
  }
  // The mark of the kernel that a run launches; -1 when it launches none.
  int Mark() {
    if (!attention_->Run(testing::kStreamOfATest, testing::kTensorsOfATest, kServedShape).ok()) return -1;
    int mark = -2;
    std::memcpy(&mark, fake::TakeLaunched().back().parameters[4].data(), sizeof mark);
    return mark;
  }

  std::shared_ptr<FakeAnswers::Served> served_ = std::make_shared<FakeAnswers::Served>();
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Attention> attention_;
};

TEST_F(RefreshTest, AnotherAnswerIsLaunchedOnceItWasNoticed) {
  EXPECT_EQ(Mark(), 1);
  Serve(OneLaunch(kServed, 2));
  EXPECT_EQ(Mark(), 1);
  Refresh();
  EXPECT_EQ(Mark(), 2);
}

TEST_F(RefreshTest, ARollBackIsNoticedWithoutBeingAskedFor) {
  Open({.revalidate = absl::Milliseconds(1)});
  EXPECT_EQ(Mark(), 1);
  Serve(OneLaunch(kServed, 2));
  const absl::Time end = absl::Now() + testing::kSoon;
  while (Mark() != 2 && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(Mark(), 2);
}

TEST_F(RefreshTest, ByItselfOnlyWhatIsLaunchedIsLookedAt) {
  Open({.revalidate = absl::Milliseconds(1)});
  const auto questions = [this] {
    const std::lock_guard lock(served_->mutex);
    return served_->questions;
  };
  // Warm counts as a use; the look after it finds none, however many follow.
  (void)attention_->Find({.batch = 1, .seq_q = 1, .seq_kv = 7});
  int before = -1;
  for (const absl::Time end = absl::Now() + testing::kSoon; before != questions() && absl::Now() < end;) {
    before = questions();
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(before, questions());
}

TEST_F(RefreshTest, AKernelThatIsServedNoMoreIsNotLaunched) {
  Serve(absl::NotFoundError("rolled back"));
  Refresh();
  const absl::Status status = attention_->Run(testing::kStreamOfATest, testing::kTensorsOfATest, kServedShape);
  EXPECT_EQ(status, absl::UnavailableError(absl::StrCat("no kernel for ", kServed, " yet: rolled back")));
}

TEST_F(RefreshTest, AKernelStaysInUseWhileNobodyCanBeAsked) {
  SetUnreachable(absl::UnavailableError("connection refused"));
  Refresh();
  EXPECT_EQ(Mark(), 1);
}

TEST_F(RefreshTest, AKernelStaysInUseWhileItsSuccessorIsCompiled) {
  v1::GetBestResponse answer = OneLaunch(kServed, 2);
  answer.set_artifact_state(v1::ARTIFACT_STATE_COMPILING);
  Serve(answer);
  Refresh();
  EXPECT_EQ(Mark(), 1);
}

TEST_F(RefreshTest, AKernelStaysInUseWhenItsSuccessorCannotBeLoaded) {
  v1::GetBestResponse answer = OneLaunch(kServed, 2);
  answer.mutable_artifact()->append("x");
  answer.set_artifact_sha256(std::string(64, '0'));
  Serve(answer);
  Refresh();
  EXPECT_EQ(Mark(), 1);
}

TEST_F(RefreshTest, AnAnswerThatIsTheSameIsNotLoadedAgain) {
  const int loads = fake::Calls("cuModuleGetFunction");
  Refresh();
  EXPECT_EQ(fake::Calls("cuModuleGetFunction"), loads);
}

TEST_F(RefreshTest, APlanStaysAsItIsWhenTheAnswerChanges) {
  const auto plan = *attention_->Find(kServedShape);
  Serve(OneLaunch(kServed, 2));
  Refresh();
  ASSERT_EQ(plan->Enqueue(testing::kTensorsOfATest, testing::kStreamOfATest, 0), absl::OkStatus());
  EXPECT_EQ(fake::TakeLaunched().back().parameters[4], std::string("\1\0\0\0", 4));
}

TEST_F(RefreshTest, WhatHadNoAnswerIsAskedForAgain) {
  Serve(absl::NotFoundError("rolled back"));
  Refresh();
  EXPECT_EQ(Mark(), -1);
  Serve(OneLaunch(kServed, 3));
  Refresh();
  EXPECT_EQ(attention_->Warm(absl::MakeConstSpan(&kServedShape, 1), testing::kSoon), absl::OkStatus());
  EXPECT_EQ(Mark(), 3);
}

}  // namespace
}  // namespace attune::launch
