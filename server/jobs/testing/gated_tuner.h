// Tuners whose trials stop at a gate.
#ifndef ATTUNE_SERVER_JOBS_TESTING_GATED_TUNER_H_
#define ATTUNE_SERVER_JOBS_TESTING_GATED_TUNER_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {

// Trials wait here until they are let pass.
class Gate {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [this] { return open_ || passes_ > 0; }));
    if (!open_) --passes_;
  }
  void AwaitArrival(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return arrived_ >= count; }));
  }
  void LetOnePass() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int passes_ = 0;
  bool open_ = false;
};

class GatedTunerTest : public TunerTest {
 protected:
  void GateTrials() {
    device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      gate_.Pass();
      return device_.Good(request.candidate());
    });
  }

  void ExpectEveryVariantTriedOnce() {
    EXPECT_THAT(Tries(), ::testing::SizeIs(6));
    EXPECT_THAT(Tries(), ::testing::Each(::testing::Pair(::testing::_, 1)));
  }

  Gate gate_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TESTING_GATED_TUNER_H_
