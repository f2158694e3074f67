#include "server/trials/device_turn.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/supervisor/testing/fake_workers.h"
#include "server/trials/device_slot.h"

namespace attune::trials {
namespace {

using Ticket = DeviceTurn::Ticket;

bool Wanted() { return true; }

const std::stop_token kNever;

class Journal {
 public:
  void Add(std::string what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_back(std::move(what));
  }
  std::vector<std::string> entries() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> entries_;
};

TEST(DeviceTurn, TheOnlyTicketNeedNotWait) {
  DeviceTurn turn;
  Ticket ticket(turn, Priority::kBackground);
  EXPECT_TRUE(ticket.Begin(kNever));
  ticket.End();
  EXPECT_TRUE(ticket.Begin(kNever));
  ticket.End();
}

TEST(DeviceTurn, AnInteractiveTicketGoesBeforeABackgroundOneBetweenTwoCalls) {
  DeviceTurn turn;
  Journal journal;
  Ticket background(turn, Priority::kBackground);
  ASSERT_TRUE(background.Begin(kNever));
  auto interactive = std::make_unique<Ticket>(turn, Priority::kInteractive);
  std::thread second([&] {
    ASSERT_TRUE(interactive->Begin(kNever));
    journal.Add("interactive");
    interactive->End();
    interactive.reset();
  });
  journal.Add("background, first call");
  background.End();
  ASSERT_TRUE(background.Begin(kNever));  // only once the interactive ticket has gone
  journal.Add("background, second call");
  background.End();
  second.join();
  EXPECT_EQ(journal.entries(),
            (std::vector<std::string>{"background, first call", "interactive", "background, second call"}));
}

TEST(DeviceTurn, AnIdleTicketGivesWayToABackgroundOneBetweenTwoCalls) {
  DeviceTurn turn;
  Ticket idle(turn, Priority::kIdle);
  ASSERT_TRUE(idle.TryBegin());
  idle.End();
  {
    Ticket background(turn, Priority::kBackground);
    EXPECT_FALSE(idle.TryBegin());
    ASSERT_TRUE(background.TryBegin());
    background.End();
  }
  ASSERT_TRUE(idle.TryBegin());
  idle.End();
}

TEST(DeviceTurn, EqualTicketsGoOneAfterTheOther) {
  DeviceTurn turn;
  Journal journal;
  auto first = std::make_unique<Ticket>(turn, Priority::kBackground);
  Ticket second(turn, Priority::kBackground);
  std::thread other([&] {
    ASSERT_TRUE(second.Begin(kNever));
    journal.Add("second");
    second.End();
  });
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(first->Begin(kNever));
    journal.Add("first");
    first->End();
  }
  first.reset();
  other.join();
  EXPECT_EQ(journal.entries(), (std::vector<std::string>{"first", "first", "first", "second"}));
}

Waiter BegunAs(uint64_t begun) {
  Waiter waiter;
  waiter.begun = begun;
  return waiter;
}

TEST(DeviceTurn, OfEqualsThatWaitForTheirFirstCallTheOneThatBeganFirstGoesFirst) {
  DeviceTurn turn;
  Ticket third(turn, Priority::kBackground, BegunAs(3));
  Ticket second(turn, Priority::kBackground, BegunAs(2));
  EXPECT_FALSE(third.TryBegin()) << "it came first, but began later";
  {
    Ticket interactive(turn, Priority::kInteractive, BegunAs(4));
    EXPECT_FALSE(second.TryBegin());
  }
  ASSERT_TRUE(second.TryBegin());
  second.End();
  Ticket first(turn, Priority::kBackground, BegunAs(1));
  EXPECT_FALSE(first.TryBegin()) << "the second one's inputs are on the device";
  EXPECT_TRUE(second.TryBegin());
  second.End();
  EXPECT_FALSE(third.TryBegin()) << "the first one is before it";
}

TEST(DeviceTurn, WhoWaitsIsToldWhoGoesFirstAndHowManyAreAhead) {
  DeviceTurn turn;
  Journal journal;
  const auto waiter = [&journal](const std::string& name) {
    return Waiter{name, "the " + name, [&journal](const QueuePlace& place) {
                    const std::string ahead = place.first + ", " + place.first_title + ", ";
                    journal.Add(place.on_device ? "on the device" : ahead + std::to_string(place.position));
                  }};
  };
  Ticket first(turn, Priority::kBackground, waiter("first"));
  auto second = std::make_unique<Ticket>(turn, Priority::kInteractive, waiter("second"));
  Ticket third(turn, Priority::kBackground, waiter("third"));
  ASSERT_TRUE(second->Begin(kNever));
  EXPECT_EQ(journal.entries(), std::vector<std::string>{"on the device"}) << "it did not wait";
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return third.Begin(stop.get_token()); });
  while (journal.entries().size() < 2) std::this_thread::yield();
  second->End();
  second.reset();
  while (journal.entries().size() < 3) std::this_thread::yield();
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(journal.entries(),
            (std::vector<std::string>{"on the device", "second, the second, 2", "first, the first, 1"}));
}

TEST(DeviceTurn, AStopEndsTheWait) {
  DeviceTurn turn;
  Ticket first(turn, Priority::kInteractive);
  Ticket second(turn, Priority::kBackground);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return second.Begin(stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
}

TEST(DeviceTurn, TryBeginWaitsForNobody) {
  DeviceTurn turn;
  DeviceTurn::Ticket first(turn, Priority::kBackground);
  DeviceTurn::Ticket second(turn, Priority::kBackground);
  EXPECT_FALSE(second.TryBegin()) << "the first goes before it";
  EXPECT_TRUE(first.TryBegin());
  EXPECT_FALSE(first.TryBegin()) << "it is on the device";
  first.End();
  EXPECT_TRUE(first.TryBegin());
  first.End();
}

TEST(DeviceTurn, IdleBeginsOnceNobodyHoldsATicketAfterUse) {
  DeviceTurn turn;
  auto idle = std::async(std::launch::async, [&] { return turn.BeginIdle(absl::Milliseconds(1), kNever); });
  {
    Ticket ticket(turn, Priority::kInteractive);
    ASSERT_TRUE(ticket.Begin(kNever));
    ticket.End();
  }
  EXPECT_TRUE(idle.get());
  turn.EndIdle();
}

TEST(DeviceTurn, IdleDoesNotBeginOnADeviceThatWasNotUsed) {
  DeviceTurn turn;
  std::stop_source stop;
  auto idle = std::async(std::launch::async, [&] { return turn.BeginIdle(absl::ZeroDuration(), stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(idle.get());
}

v1::Device Device() {
  v1::Device device;
  device.set_id("cuda:0");
  return device;
}

worker::v1::PrepareRequest PrepareRequestOf(const std::string& text) {
  worker::v1::PrepareRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem(text));
  request.mutable_exact()->set_artifact("exact");
  return request;
}

TEST(DeviceUse, PreparesOnceForManyTrials) {
  supervisor::FakeDeviceWorker worker(Device());
  DeviceSlot slot(&worker, absl::Hours(1));
  DeviceUse session(slot, Priority::kInteractive, kNever);
  session.Use(PrepareRequestOf("b1.h1.q128.d64.f16"));
  EXPECT_TRUE(session.Prepare().ok());
  EXPECT_TRUE(session.Trial({}, Wanted).ok());
  EXPECT_TRUE(session.Trial({}, Wanted).ok());
  EXPECT_EQ(worker.calls(), (std::vector<std::string>{"prepare b1.h1.q128.d64.f16", "trial b1.h1.q128.d64.f16",
                                                      "trial b1.h1.q128.d64.f16"}));
}

TEST(DeviceUse, PreparesAnewAfterAnInteractiveJobHasUsedTheDevice) {
  supervisor::FakeDeviceWorker worker(Device());
  DeviceSlot slot(&worker, absl::Hours(1));
  DeviceUse background(slot, Priority::kBackground, kNever);
  background.Use(PrepareRequestOf("b1.h1.q128.d64.f16"));
  EXPECT_TRUE(background.Trial({}, Wanted).ok());
  {
    DeviceUse interactive(slot, Priority::kInteractive, kNever);
    interactive.Use(PrepareRequestOf("b2.h8.q512.d64.f16"));
    EXPECT_TRUE(interactive.Trial({}, Wanted).ok());
  }
  EXPECT_TRUE(background.Trial({}, Wanted).ok());
  EXPECT_EQ(worker.calls(), (std::vector<std::string>{"prepare b1.h1.q128.d64.f16", "trial b1.h1.q128.d64.f16",
                                                      "prepare b2.h8.q512.d64.f16", "trial b2.h8.q512.d64.f16",
                                                      "prepare b1.h1.q128.d64.f16", "trial b1.h1.q128.d64.f16"}));
}

}  // namespace
}  // namespace attune::trials
