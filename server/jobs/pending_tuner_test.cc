#include "server/jobs/pending_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/base/reason.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using PendingTunerTest = TunerTest;

TEST_F(PendingTunerTest, SaysTryAgainUntilTheTunerArrives) {
  PendingTuner pending;
  EXPECT_EQ(pending.Tune(TuneRequest()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pending.Sweep({}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pending.GetOperation("operations/1").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pending.Watch("operations/1", [](const v1::Operation&) {}).status().code(), absl::StatusCode::kUnavailable);
  pending.Drain(absl::ZeroDuration());
}

TEST_F(PendingTunerTest, SaysWhatItWaitsForAndWhenToTryAgain) {
  PendingTuner pending;
  EXPECT_TRUE(pending.Tune(TuneRequest()).status().GetPayload(kRetryDelayUrl).has_value());
  absl::Status away = absl::UnavailableError("no database");
  SetRetryDelay(absl::Seconds(5), away);
  pending.SayMeanwhile(away);
  EXPECT_EQ(pending.Tune(TuneRequest()).status(), away);
  EXPECT_EQ(pending.Cancel("operations/1").status(), away);
}

TEST_F(PendingTunerTest, IsTheRealTunerOnceThatArrived) {
  PendingTuner pending;
  pending.Arrive(&Start());
  EXPECT_EQ(AwaitStarted(pending.Tune(TuneRequest())).state(), v1::Operation::STATE_SUCCEEDED);
}

}  // namespace
}  // namespace attune::jobs
