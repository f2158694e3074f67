// One tuning on several cards of a class, of which some are lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/time/time.h"
#include "server/jobs/testing/several_cards.h"

namespace attune::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LostCardsTest = SeveralCardsTest;

TEST_F(LostCardsTest, GoesOnWithoutACardThatIsLost) {
  device_.ScriptTrial(Sleeping(device_, absl::Milliseconds(10)));
  sister_.ScriptTrial(Losing());
  StartTwo();
  const v1::Operation done = Tune(OnCards(2));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  ExpectAllTried();
  EXPECT_THAT(TriedOn("cuda:1"), IsEmpty());
  EXPECT_EQ(Verdicts().count(v1::VERDICT_LOST), 0U) << "what it had in hand was tried on the other";
  EXPECT_THAT(done.tune().decision(), HasSubstr("it went on without cuda:1: "));
  EXPECT_THAT(done.progress().cards(1).lost(), HasSubstr("the GPU is lost"));
  EXPECT_EQ(Served(), kFastest);
}

TEST_F(LostCardsTest, DecidesOnAnotherWhenTheFirstIsLost) {
  device_.ScriptTrial(Losing());
  sister_.ScriptTrial(Sleeping(sister_, absl::Milliseconds(5)));
  StartTwo();
  const v1::Operation done = Tune(OnCards(2));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  ExpectAllTried();
  EXPECT_EQ(Served(), kFastest);
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:1");
  EXPECT_THAT(done.tune().decision(), HasSubstr("it went on without cuda:0: "));
  EXPECT_EQ(device_.Count("play-off"), 0);
}

TEST_F(LostCardsTest, FailsWhenAllAreLost) {
  device_.ScriptTrial(Losing());
  sister_.ScriptTrial(Losing());
  StartTwo();
  const v1::Operation done = Tune(OnCards(2));
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr("the GPU is lost"));
}

// Mostly crosswise: which card the second has first depends on whether the first job has begun.
TEST_F(LostCardsTest, JobsThatWaitForEachOthersCardsEndWhenBothAreLost) {
  std::atomic<int> left[2] = {6, 6};
  size_t number = 0;
  for (supervisor::FakeDeviceWorker* card : {&device_, &sister_}) {
    std::atomic<int>& good = left[number++];
    card->ScriptTrial([&, card](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      gate_.Pass();
      if (--good < 0) return absl::UnavailableError("the GPU is lost");
      return card->Good(request.candidate());
    });
  }
  StartTwo();
  v1::TuneRequest crosswise = OnCards(2, kOther);
  crosswise.set_device_id("l4");
  const auto one = tuner_->Tune(OnCards(2));
  const auto other = tuner_->Tune(crosswise);
  gate_.AwaitArrival(2);
  gate_.Open();
  for (const auto& started : {one, other}) {
    const v1::Operation done = AwaitStarted(started);
    EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
    EXPECT_THAT(done.error().message(), HasSubstr("the GPU is lost"));
  }
}

TEST_F(LostCardsTest, GivesALostFirstCardBackWhileItWaitsForAnother) {
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (device_.prepared() == kProblem) return absl::UnavailableError("the GPU is lost");
    return device_.Good(request.candidate());
  });
  GateSister();
  StartTwo();
  const auto busy = tuner_->Tune(On("cuda:1", kOther));
  gate_.AwaitArrival(1);
  const auto shared = tuner_->Tune(OnCards(2));
  Await(shared->name(), [](const v1::Operation& operation) { return operation.progress().trials_done() >= 3; });
  EXPECT_EQ(Tune(On("cuda:0", "b1.h1.q64.d64.f16")).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_FALSE(tuner_->GetOperation(shared->name())->done()) << "it waits for the other";
  gate_.Open();
  EXPECT_EQ(AwaitStarted(busy).state(), v1::Operation::STATE_SUCCEEDED);
  const v1::Operation done = AwaitStarted(shared);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:1");
}

TEST_F(LostCardsTest, NoCardIsLostWithTheCompiler) {
  pool_.Script([](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    const bool searched = std::any_of(request.options().begin(), request.options().end(),
                                      [](const std::string& option) { return option.starts_with("-DBLOCK="); });
    if (searched) return absl::InternalError("no space left");
    return supervisor::FakeCompilePool::Plain(request);
  });
  StartTwo();
  const v1::Operation done = Tune(OnCards(2));
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr(" trials in a row were lost"));
  for (const v1::CardShare& card : done.progress().cards()) EXPECT_EQ(card.lost(), "");
}

}  // namespace
}  // namespace attune::jobs
