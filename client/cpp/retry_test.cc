#include "client/cpp/retry.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::ElementsAre;

// Sleeping passes time at once.
class RecordingClock : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  void SleepFor(absl::Duration duration) const override {
    sleeps_.push_back(duration);
    now_ += duration;
  }
  const std::vector<absl::Duration>& sleeps() const { return sleeps_; }

 private:
  mutable absl::Time now_ = absl::FromUnixSeconds(1000);
  mutable std::vector<absl::Duration> sleeps_;
};

RetryPolicy Even() {
  RetryPolicy policy;
  policy.jitter = 0;
  return policy;
}

class RetryTest : public ::testing::Test {
 protected:
  // Answers with `answers` one after the other; the last one for ever.
  absl::Status Call(const RetryPolicy& policy, const std::vector<absl::Status>& answers,
                    absl::Duration limit = absl::Seconds(60)) {
    return CallWithRetries(policy, clock_.Now() + limit, clock_, [&] {
      const size_t index = std::min(static_cast<size_t>(calls_++), answers.size() - 1);
      return answers[index];
    });
  }

  RecordingClock clock_;
  int calls_ = 0;
};

TEST_F(RetryTest, TriesAgainWhenNobodyIsThere) {
  const auto status = Call(Even(), {absl::UnavailableError(""), absl::UnavailableError(""), absl::OkStatus()});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(calls_, 3);
  EXPECT_THAT(clock_.sleeps(), ElementsAre(absl::Milliseconds(50), absl::Milliseconds(100)));
}

TEST_F(RetryTest, TakesEveryOtherErrorAsTheAnswer) {
  for (const absl::Status& error : {absl::DeadlineExceededError("x"), absl::InternalError("x"),
                                    absl::ResourceExhaustedError("x"), absl::NotFoundError("x")}) {
    calls_ = 0;
    EXPECT_EQ(Call(Even(), {error}), error);
    EXPECT_EQ(calls_, 1);
  }
}

TEST_F(RetryTest, SaysWhatWasAnsweredWhereALaterAttemptHasNoTimeLeft) {
  const absl::Status refusal = absl::UnavailableError("the database is away");
  EXPECT_EQ(Call(Even(), {refusal, absl::DeadlineExceededError("")}), refusal);
  EXPECT_EQ(calls_, 2);
}

TEST_F(RetryTest, GivesUpWhenTheAttemptsAreUsedUp) {
  EXPECT_TRUE(absl::IsUnavailable(Call(Even(), {absl::UnavailableError("")})));
  EXPECT_EQ(calls_, Even().attempts);
}

TEST_F(RetryTest, NeverWaitsPastTheDeadline) {
  EXPECT_TRUE(absl::IsUnavailable(Call(Even(), {absl::UnavailableError("")}, absl::Milliseconds(120))));
  EXPECT_EQ(calls_, 2);
  EXPECT_THAT(clock_.sleeps(), ElementsAre(absl::Milliseconds(50)));
}

TEST(Backoff, WaitsGrowUpToTheLongest) {
  RetryPolicy policy = Even();
  policy.longest_wait = absl::Milliseconds(150);
  Backoff backoff(policy, 1);
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(50));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(100));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(150));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(150));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(50));
}

TEST(Backoff, JitterKeepsClientsApartWithinItsBounds) {
  const RetryPolicy policy;
  EXPECT_NE(Backoff(policy, 1).Next(), Backoff(policy, 2).Next());
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const absl::Duration wait = Backoff(policy, seed).Next();
    EXPECT_GE(wait, absl::Milliseconds(40));
    EXPECT_LE(wait, absl::Milliseconds(60));
  }
}

}  // namespace
}  // namespace attune
