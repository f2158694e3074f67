// One tuning on several cards of a class, of which some are lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/jobs/testing/several_cards.h"

namespace attune::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LostCardsTest = SeveralCardsTest;

bool FirstIsLost(const v1::Operation& operation) {
  return operation.progress().cards_size() > 0 && !operation.progress().cards(0).lost().empty();
}

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
  Await(shared->name(), FirstIsLost);
  EXPECT_EQ(Tune(On("cuda:0", "b1.h1.q64.d64.f16")).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_FALSE(tuner_->GetOperation(shared->name())->done()) << "it waits for the other";
  gate_.Open();
  EXPECT_EQ(AwaitStarted(busy).state(), v1::Operation::STATE_SUCCEEDED);
  const v1::Operation done = AwaitStarted(shared);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:1");
}

// Of three cards the first is lost, and a more urgent job has the second from its first trial on.
TEST_F(LostCardsTest, DecidesOnTheCardThatHasRunMostRatherThanOneThatIsBusy) {
  v1::Device third_card = Sister();
  third_card.set_id("cuda:2");
  third_card.set_uuid("GPU-2");
  supervisor::FakeDeviceWorker third(third_card);
  third.ScriptUs(UsOf);
  device_.ScriptTrial(Losing());
  Gate first_trial;
  sister_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    (sister_.prepared() == kOther ? gate_ : first_trial).Pass();
    return sister_.Good(request.candidate());
  });
  std::atomic<int> tried = 0;
  Gate last_trials;
  third.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (++tried > kVariants / 2) last_trials.Pass();
    return third.Good(request.candidate());
  });
  others_ = {&sister_, &third};
  Start(Families(SearchFamily("many", Blocks())));
  v1::TuneRequest background = OnCards(3);
  background.set_background(true);
  const auto shared = tuner_->Tune(background);
  first_trial.AwaitArrival(1);
  last_trials.AwaitArrival(1);
  Await(shared->name(), FirstIsLost);
  const auto urgent = tuner_->Tune(On("cuda:1", kOther));
  Await(urgent->name(), [](const v1::Operation& operation) { return operation.progress().queue_position() > 0; });
  first_trial.LetOnePass();
  gate_.AwaitArrival(1);
  first_trial.Open();
  last_trials.Open();
  const v1::Operation done = AwaitStarted(shared);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  ExpectAllTried();
  EXPECT_EQ(Served(), kFastest);
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:2");
  gate_.Open();
  EXPECT_EQ(AwaitStarted(urgent).state(), v1::Operation::STATE_SUCCEEDED);
  tuner_ = nullptr;
  tuning_.reset();  // before the third card
}

// The sister has a trial in hand when the first has come to its end; it comes back, and the first is lost with it.
TEST_F(LostCardsTest, GoesOnElsewhereWhenTheFirstIsLostWithWhatCameBack) {
  std::atomic<bool> taken = false;
  absl::Notification held;
  std::string in_hand;  // from `held` on
  sister_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (!taken.exchange(true)) {
      in_hand = Seen(request.candidate());
      held.Notify();
      gate_.Pass();
      absl::SleepFor(absl::Milliseconds(300));  // the first ends the search meanwhile: the next try is stopped
      return absl::UnavailableError("the GPU is lost");
    }
    return sister_.Good(request.candidate());
  });
  std::atomic<bool> came_back = false;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    EXPECT_TRUE(held.WaitForNotificationWithTimeout(absl::Minutes(1)));  // the sister has its trial first
    if (Seen(request.candidate()) != in_hand) return device_.Good(request.candidate());
    came_back = true;
    return absl::FailedPreconditionError("another daemon has the device");
  });
  StartTwo();
  const auto started = tuner_->Tune(OnCards(2));
  Await(started->name(),
        [](const v1::Operation& operation) { return operation.progress().trials_done() >= kVariants - 1; });
  gate_.Open();
  const v1::Operation done = AwaitStarted(started);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_TRUE(came_back);
  ExpectAllTried();
  EXPECT_EQ(Verdicts().count(v1::VERDICT_LOST), 0U);
  EXPECT_EQ(Served(), kFastest);
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:1");
  EXPECT_THAT(done.tune().decision(), HasSubstr("it went on without cuda:0: "));
}

// Loses the trials of one variant, so many times in all.
supervisor::FakeDeviceWorker::Trying LosesOne(const supervisor::FakeDeviceWorker& card, const std::string& which,
                                              std::atomic<int>& times) {
  return [&card, which, &times](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (Seen(request.candidate()) == which && --times >= 0) return absl::UnavailableError("the GPU is lost");
    return card.Good(request.candidate());
  };
}

TEST_F(LostCardsTest, TheOnlyCardAtWorkTriesWhatItLostOnceMore) {
  GateSister();
  std::atomic<int> times = 3;  // of one trial
  device_.ScriptTrial(LosesOne(device_, "20/7", times));
  StartTwo();
  const auto busy = tuner_->Tune(On("cuda:1", kOther));
  gate_.AwaitArrival(1);
  const v1::Operation done = Tune(OnCards(2));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_LT(times, 0);
  ExpectAllTried();
  EXPECT_EQ(Verdicts().count(v1::VERDICT_LOST), 0U);
  gate_.Open();
  AwaitStarted(busy);
}

TEST_F(LostCardsTest, ATrialThatIsLostTwiceIsLost) {
  GateSister();
  std::atomic<int> times = 1000;
  device_.ScriptTrial(LosesOne(device_, "20/7", times));
  StartTwo();
  const auto busy = tuner_->Tune(On("cuda:1", kOther));
  gate_.AwaitArrival(1);
  const v1::Operation done = Tune(OnCards(2));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(times, 1000 - 2 * 3) << "three tries each";
  EXPECT_EQ(Verdicts()[v1::VERDICT_LOST], 1);
  EXPECT_EQ(done.progress().cards(0).lost(), "");
  gate_.Open();
  AwaitStarted(busy);
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
