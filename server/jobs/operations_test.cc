#include "server/jobs/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <semaphore>
#include <thread>

#include "absl/time/clock.h"
#include "proto/attune/quote.h"
#include "server/store/testing/fake_store.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Operations::Wanted Wanted(const std::string& identity, const std::string& request_id = "") {
  return {store::JobKind::kTune, "request", request_id, identity, "tune something"};
}

// Collects what a watcher is told.
class Listener {
 public:
  Watchers::Watcher watcher() {
    return [this](const v1::Operation& operation) {
      const std::lock_guard<std::mutex> lock(mutex_);
      heard_.push_back(operation);
      changed_.notify_all();
    };
  }
  std::vector<v1::Operation> AwaitDone() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !heard_.empty() && heard_.back().done(); });
    return heard_;
  }
  void AwaitFirst() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !heard_.empty(); });
  }
  size_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return heard_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::Operation> heard_;
};

void Succeed(Operations& operations, const std::shared_ptr<LiveOperation>& live) {
  operations.Finish(live, v1::Operation::STATE_SUCCEEDED, absl::OkStatus(), [](v1::Operation& operation) {
    operation.mutable_tune()->set_decision("so");
    return absl::OkStatus();
  });
}

TEST(Operations, AnIdenticalRequestInFlightIsJoined) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto first = operations.Start(Wanted("a"));
  const auto second = operations.Start(Wanted("a"));
  const auto other = operations.Start(Wanted("b"));
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_TRUE(first->fresh);
  EXPECT_FALSE(second->fresh);
  EXPECT_EQ(first->operation.name(), second->operation.name());
  EXPECT_TRUE(other->fresh);
  EXPECT_LT(first->operation.name(), other->operation.name());
}

// Takes a job when it is let.
class SlowQueue : public store::FakeQueue {
 public:
  SlowQueue() : FakeQueue(absl::Now) {}
  absl::StatusOr<store::Job> Create(const store::Job& job, const store::JoinTerms& terms) override {
    taking.release();
    taken.acquire();
    return FakeQueue::Create(job, terms);
  }

  std::binary_semaphore taking{0};
  std::binary_semaphore taken{1};
};

TEST(Operations, WhoAsksForOneDoesNotWaitForTheCommitOfAnother) {
  SlowQueue queue;
  Operations operations(&queue);
  const auto first = operations.Start(Wanted("a"));
  ASSERT_TRUE(first.ok());
  queue.taking.acquire();
  auto second = std::async(std::launch::async, [&] { return operations.Start(Wanted("b")); });
  queue.taking.acquire();
  auto asked = std::async(std::launch::async, [&] { return operations.Get(first->operation.name()).ok(); });
  EXPECT_EQ(asked.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  queue.taken.release();
  EXPECT_TRUE(asked.get());
  EXPECT_TRUE(second.get()->fresh);
}

TEST(Operations, AFinishedOneIsNotJoinedButKeptByItsRequestId) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto first = operations.Start(Wanted("a", "id"));
  ASSERT_TRUE(first->live->Begin());
  Succeed(operations, first->live);
  const auto same_id = operations.Start(Wanted("a", "id"));
  EXPECT_FALSE(same_id->fresh);
  EXPECT_EQ(same_id->operation.name(), first->operation.name());
  EXPECT_EQ(same_id->operation.tune().decision(), "so");
  EXPECT_TRUE(operations.Start(Wanted("a"))->fresh);
}

TEST(Operations, ARequestIdIsOneRequests) {
  store::FakeStore store;
  std::string name;
  {
    Operations operations(&store.queue());
    const auto first = operations.Start(Wanted("a", "nightly"));
    name = first->operation.name();
    Operations::Wanted other = Wanted("b", "nightly");
    other.kind = store::JobKind::kSweep;
    const absl::Status refused = operations.Start(other).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(refused.message(), "request_id is 'nightly', which was given to " + name +
                                     ", another request; give this one an id of its own");
    ASSERT_TRUE(first->live->Begin());
    Succeed(operations, first->live);
    EXPECT_EQ(operations.Start(other).status().code(), absl::StatusCode::kAlreadyExists);
  }
  Operations after_restart(&store.queue());
  EXPECT_EQ(after_restart.Start(Wanted("b", "nightly")).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(after_restart.Start(Wanted("a", "nightly"))->operation.name(), name);
}

TEST(Operations, AFullQueueTakesNoMoreUntilOneHasEnded) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto first = operations.Start(Wanted("first"));
  for (size_t i = 1; i < Operations::kMostInFlight; ++i) {
    ASSERT_TRUE(operations.Start(Wanted(std::to_string(i))).ok());
  }
  EXPECT_EQ(operations.Start(Wanted("one more")).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(operations.Start(Wanted("first")).ok());  // joins
  ASSERT_TRUE(first->live->Begin());
  Succeed(operations, first->live);
  EXPECT_TRUE(operations.Start(Wanted("one more")).ok());
}

TEST(Operations, ARequestIdIsKnownAfterARestart) {
  store::FakeStore store;
  std::string name;
  {
    Operations operations(&store.queue());
    const auto first = operations.Start(Wanted("a", "id"));
    name = first->operation.name();
    Succeed(operations, first->live);
  }
  Operations operations(&store.queue());
  const auto again = operations.Start(Wanted("a", "id"));
  EXPECT_FALSE(again->fresh);
  EXPECT_EQ(again->operation.name(), name);
}

TEST(Operations, ARequestThatJoinedKeepsItsIdToo) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto first = operations.Start(Wanted("a", "one"));
  ASSERT_TRUE(operations.Start(Wanted("a", "two")).ok());
  Succeed(operations, first->live);
  EXPECT_EQ(operations.Start(Wanted("a", "two"))->operation.name(), first->operation.name());
}

class LeasesTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLease = absl::Seconds(60);
  static constexpr std::chrono::seconds kPatience{60};

  // Started by one, and begun.
  std::shared_ptr<LiveOperation> Begun() {
    const std::shared_ptr<LiveOperation> live = one_.Start(Wanted("a"))->live;
    EXPECT_TRUE(live->Begin());
    EXPECT_TRUE(one_.Lease(live));
    return live;
  }
  // Adopted and leased by the other, whose time has come.
  std::shared_ptr<LiveOperation> TakenOver(const std::string& name) {
    now_ += kLease;
    const std::shared_ptr<LiveOperation> live = other_.Adopt(*store_.queue().Get(name), "a");
    EXPECT_NE(live, nullptr);
    EXPECT_TRUE(live->Begin());
    EXPECT_TRUE(other_.Lease(live));
    return live;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  store::FakeStore store_{store::FakeStore::MakeState([this] { return now_; })};
  Operations one_{&store_.queue(), {"one", kLease}};
  Operations other_{&store_.queue(), {"other", kLease}};
};

TEST_F(LeasesTest, WhatIsLeasedIsRenewedAndNobodyElses) {
  const std::shared_ptr<LiveOperation> live = Begun();
  for (int i = 0; i < 5; ++i) {
    now_ += kLease / 3;
    one_.Renew();
  }
  const store::Job job = *store_.queue().Get(live->name());
  EXPECT_EQ(job.holder, "one");
  EXPECT_EQ(job.leased_until, now_ + kLease);
  const std::shared_ptr<LiveOperation> adopted = other_.Adopt(job, "a");
  ASSERT_TRUE(adopted->Begin());
  EXPECT_FALSE(other_.Lease(adopted));
  EXPECT_EQ(other_.Find(live->name()), nullptr);
  EXPECT_FALSE(live->stop_token().stop_requested());
}

TEST_F(LeasesTest, AStaleHoldersWritesAreRefusedAndItsJobIsLeftToTheOther) {
  const std::shared_ptr<LiveOperation> stale = Begun();
  const std::shared_ptr<LiveOperation> live = TakenOver(stale->name());
  EXPECT_TRUE(store::IsStale(one_.Save(*stale)));
  Succeed(one_, stale);
  EXPECT_FALSE(store_.queue().Get(stale->name())->operation.done());
  EXPECT_EQ(one_.Find(stale->name()), nullptr);
  Succeed(other_, live);
  EXPECT_EQ(store_.queue().Get(stale->name())->operation.state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(LeasesTest, WhoHasLostItsLeaseIsStopped) {
  const std::shared_ptr<LiveOperation> stale = Begun();
  TakenOver(stale->name());
  EXPECT_FALSE(stale->lost());
  one_.Renew();
  EXPECT_TRUE(stale->lost());
  EXPECT_TRUE(stale->stop_token().stop_requested());
  EXPECT_FALSE(stale->cancelled());
}

TEST_F(LeasesTest, ACancellationElsewhereStopsTheHolder) {
  const std::shared_ptr<LiveOperation> live = Begun();
  ASSERT_TRUE(store_.queue().Cancel(live->name()).ok());
  one_.Renew();
  EXPECT_TRUE(live->cancelled());
  EXPECT_TRUE(live->stop_token().stop_requested());
}

TEST_F(LeasesTest, WhoCannotRenewForTooLongStopsBeforeOthersTakeOver) {
  absl::Duration clock = absl::Seconds(1000);
  Operations fenced{&store_.queue(), {"fenced", kLease, absl::Seconds(45), [&clock] { return clock; }}};
  const std::shared_ptr<LiveOperation> live = fenced.Start(Wanted("b"))->live;
  ASSERT_TRUE(live->Begin());
  ASSERT_TRUE(fenced.Lease(live));
  clock += absl::Seconds(30);
  fenced.Renew();
  store_.queue().FailWrites(absl::UnavailableError("the database is away"));
  clock += absl::Seconds(44);
  fenced.Renew();
  EXPECT_FALSE(live->lost());
  clock += absl::Seconds(1);
  fenced.Renew();
  EXPECT_TRUE(live->lost());
  EXPECT_TRUE(live->stop_token().stop_requested());
  EXPECT_FALSE(live->cancelled());
  fenced.Drop(live);
  store_.queue().FailWrites(absl::OkStatus());
  EXPECT_THAT(fenced.Renew(), ElementsAre(live->name())) << "nobody has taken it: it goes on here";
}

TEST_F(LeasesTest, WhatAHolderHasIsKnownOnceALostJobHasStoppedAndWasNamed) {
  EXPECT_FALSE(one_.settled()) << "an earlier process may have left something";
  one_.Renew();
  EXPECT_TRUE(one_.settled());
  const std::shared_ptr<LiveOperation> live = one_.Start(Wanted("a"))->live;
  ASSERT_TRUE(live->Begin());
  ASSERT_TRUE(one_.Lease(live));
  store_.queue().FailWrites(absl::UnavailableError("the database is away"));
  one_.Renew();
  EXPECT_FALSE(one_.settled());
  live->Lose();
  store_.queue().FailWrites(absl::OkStatus());
  EXPECT_THAT(one_.Renew(), IsEmpty());
  EXPECT_FALSE(one_.settled()) << "it has yet to stop";
  one_.Drop(live);
  EXPECT_THAT(one_.Renew(), ElementsAre(live->name()));
  EXPECT_TRUE(one_.settled());
}

// Answers late.
class LateQueue : public store::FakeQueue {
 public:
  LateQueue() : FakeQueue(absl::Now) {}
  absl::StatusOr<std::vector<store::LeasedJob>> RenewAll(absl::string_view holder, absl::Duration duration) override {
    clock += takes;
    return FakeQueue::RenewAll(holder, duration);
  }

  absl::Duration clock = absl::Seconds(1000);
  absl::Duration takes;
};

TEST(Operations, TheTimeThatARenewalTakesToFailCounts) {
  LateQueue queue;
  Operations fenced{&queue, {"fenced", absl::Seconds(60), absl::Seconds(45), [&queue] { return queue.clock; }}};
  const std::shared_ptr<LiveOperation> live = fenced.Start(Wanted("a"))->live;
  ASSERT_TRUE(live->Begin());
  ASSERT_TRUE(fenced.Lease(live));
  queue.takes = absl::Seconds(10);
  fenced.Renew();  // counts from when it was asked for
  queue.FailWrites(absl::UnavailableError("the database is away"));
  queue.clock += absl::Seconds(24);
  fenced.Renew();
  EXPECT_FALSE(live->lost()) << "44 s";
  queue.takes = absl::Seconds(1);
  fenced.Renew();
  EXPECT_TRUE(live->lost());
}

TEST_F(LeasesTest, WhatAnEarlierProcessHeldIsRenewedAndNamed) {
  const std::shared_ptr<LiveOperation> live = Begun();
  now_ += kLease * 2;
  Operations next{&store_.queue(), {"one", kLease}};
  EXPECT_THAT(next.Renew(), ElementsAre(live->name()));
  EXPECT_EQ(store_.queue().Get(live->name())->leased_until, now_ + kLease);
  EXPECT_THAT(one_.Renew(), IsEmpty()) << "it is in flight there";
}

TEST_F(LeasesTest, AJobThatWasCancelledIsStoppedWhenItIsLeased) {
  const std::shared_ptr<LiveOperation> live = one_.Start(Wanted("a"))->live;
  ASSERT_TRUE(store_.queue().Cancel(live->name()).ok());
  ASSERT_TRUE(live->Begin());
  ASSERT_TRUE(one_.Lease(live));
  EXPECT_TRUE(live->cancelled());
}

TEST_F(LeasesTest, WatchersOfALostJobHearOfItsEndElsewhere) {
  const std::shared_ptr<LiveOperation> stale = Begun();
  Listener listener;
  const auto stop = one_.Watch(stale->name(), listener.watcher());
  const std::shared_ptr<LiveOperation> live = TakenOver(stale->name());
  one_.Drop(stale);
  Succeed(other_, live);
  one_.Follow();
  EXPECT_EQ(listener.AwaitDone().back().tune().decision(), "so");
  (*stop)();
}

TEST_F(LeasesTest, WatchersOfAnotherHoldersJobHearOfItsEnd) {
  const std::shared_ptr<LiveOperation> live = Begun();
  Listener listener;
  const auto stop = other_.Watch(live->name(), listener.watcher());
  ASSERT_TRUE(stop.ok()) << stop.status();
  other_.Follow();
  Succeed(one_, live);
  other_.Follow();
  EXPECT_EQ(listener.AwaitDone().back().tune().decision(), "so");
  (*stop)();
}

TEST_F(LeasesTest, WhoCaresIsToldBeforeAnybodyHearsThatAnothersJobHasEnded) {
  int told = 0;
  Operations third{&store_.queue(), {"three", kLease}, SteadyNow, nullptr, [&told] { ++told; }};
  const std::shared_ptr<LiveOperation> live = Begun();
  Listener listener;
  int told_at_end = -1;
  const auto stop = third.Watch(live->name(), [&](const v1::Operation& operation) {
    if (operation.done()) told_at_end = told;
    listener.watcher()(operation);
  });
  ASSERT_TRUE(third.Get(live->name()).ok());
  third.Follow();
  EXPECT_EQ(told, 0) << "it goes on";
  Succeed(one_, live);
  third.Follow();
  listener.AwaitDone();
  EXPECT_EQ(told_at_end, 1);
  EXPECT_TRUE(third.Get(live->name())->done());
  EXPECT_EQ(told, 2) << "also where it is not watched";
  (*stop)();
}

TEST_F(LeasesTest, AJobThatComesBackGoesOnWithItsWatchers) {
  const std::shared_ptr<LiveOperation> stale = Begun();
  Listener listener;
  const auto stop = one_.Watch(stale->name(), listener.watcher());
  const std::shared_ptr<LiveOperation> elsewhere = TakenOver(stale->name());
  one_.Renew();
  one_.Drop(stale);
  other_.GiveBack(elsewhere);
  const std::shared_ptr<LiveOperation> again = one_.Adopt(*store_.queue().Get(stale->name()), "a");
  ASSERT_NE(again, nullptr);
  EXPECT_FALSE(again->stop_token().stop_requested());
  ASSERT_TRUE(again->Begin());
  ASSERT_TRUE(one_.Lease(again));
  EXPECT_GT(again->epoch(), elsewhere->epoch());
  Succeed(one_, again);
  EXPECT_EQ(listener.AwaitDone().back().state(), v1::Operation::STATE_SUCCEEDED);
  (*stop)();
}

TEST_F(LeasesTest, NothingThatHasEndedIsAdopted) {
  const std::shared_ptr<LiveOperation> live = Begun();
  const store::Job before = *store_.queue().Get(live->name());
  EXPECT_EQ(one_.Adopt(before, "a"), nullptr) << "in flight";
  Succeed(one_, live);
  EXPECT_EQ(one_.Adopt(before, "a"), nullptr) << "ended";
}

TEST_F(LeasesTest, AJobWhoseEndTheStoreDoesNotTakeIsLeftToTheNextProcess) {
  const std::shared_ptr<LiveOperation> live = Begun();
  store_.queue().FailWrites(absl::InternalError("no such column"));
  Succeed(one_, live);
  EXPECT_EQ(live->Snapshot().error().message(), "storing the result: no such column");
  EXPECT_EQ(one_.Get(live->name())->error().message(), "storing the result: no such column")
      << "who asks hears it, too";
  store_.queue().FailWrites(absl::OkStatus());
  const store::Job job = *store_.queue().Get(live->name());
  EXPECT_FALSE(job.operation.done());
  EXPECT_EQ(one_.Adopt(job, "a"), nullptr);
  EXPECT_NE(Operations(&store_.queue(), {"one", kLease}).Adopt(job, "a"), nullptr);
}

TEST_F(LeasesTest, AnEndWaitsForAStoreThatIsUnavailable) {
  const std::shared_ptr<LiveOperation> live = Begun();
  store_.queue().FailWrites(absl::UnavailableError("the disk is gone"));
  std::thread ending([&] { Succeed(one_, live); });
  while (live->Snapshot().progress().message() != "waiting for the store: the disk is gone") std::this_thread::yield();
  EXPECT_FALSE(live->done());
  store_.queue().FailWrites(absl::OkStatus());
  ending.join();
  EXPECT_EQ(store_.queue().Get(live->name())->operation.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(live->Snapshot().progress().message(), "done");
}

// Whoever waits is told of a stop that comes while the store is gone.
TEST_F(LeasesTest, NothingWaitsForTheStoreOnceItStops) {
  const std::shared_ptr<LiveOperation> ending = Begun();
  const std::shared_ptr<LiveOperation> saving = one_.Start(Wanted("b"))->live;
  const std::shared_ptr<LiveOperation> leasing = one_.Start(Wanted("c"))->live;
  ASSERT_TRUE(saving->Begin() && one_.Lease(saving) && leasing->Begin());
  store_.queue().FailWrites(absl::UnavailableError("the disk is gone"));
  std::future<void> ended = std::async(std::launch::async, [&] { Succeed(one_, ending); });
  std::future<absl::Status> saved = std::async(std::launch::async, [&] { return one_.Save(*saving); });
  std::future<bool> leased = std::async(std::launch::async, [&] { return one_.Lease(leasing); });
  for (const auto& live : {ending, saving, leasing}) {
    while (live->Snapshot().progress().message() != "waiting for the store: the disk is gone") {
      std::this_thread::yield();
    }
  }
  one_.Stop();
  const bool in_time = ended.wait_for(kPatience) == std::future_status::ready &&
                       saved.wait_for(kPatience) == std::future_status::ready &&
                       leased.wait_for(kPatience) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  if (!in_time) store_.queue().FailWrites(absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(saved.get()));
  EXPECT_FALSE(leased.get());
}

TEST(Operations, AnErrorIsOneLineOfBoundedLength) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto started = operations.Start(Wanted("a"));
  operations.Finish(started->live, v1::Operation::STATE_FAILED,
                    absl::InternalError("first\nsecond" + std::string(1 << 20, 'x')),
                    [](v1::Operation&) { return absl::OkStatus(); });
  const v1::Operation failed = store.queue().Get(started->operation.name())->operation;
  EXPECT_EQ(failed.error().message().substr(0, 14), "first\\nsecondx");
  EXPECT_EQ(failed.error().message().size(), kMostMessageBytes);
  EXPECT_EQ(failed.progress().message(), failed.error().message());
}

TEST(Operations, TheStoreHasTheResultBeforeWatchersHear) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto started = operations.Start(Wanted("a"));
  bool stored_first = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  const auto stop = operations.Watch(started->operation.name(), [&](const v1::Operation& operation) {
    if (!operation.done()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    stored_first = store.queue().Get(operation.name())->operation.done();
    done = true;
    changed.notify_all();
  });
  ASSERT_TRUE(stop.ok());
  Succeed(operations, started->live);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done; });
  EXPECT_TRUE(stored_first);
  lock.unlock();
  (*stop)();
}

TEST(Watching, ManyChangesAreToldInFewCallsAndTheLastHasTheEnd) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto started = operations.Start(Wanted("a"));
  Listener listener;
  const auto stop = operations.Watch(started->operation.name(), listener.watcher());
  started->live->Begin();
  for (int i = 0; i < 20000; ++i) {
    started->live->Update([&](v1::Operation& operation) { operation.mutable_progress()->set_trials_done(i + 1); });
  }
  Succeed(operations, started->live);
  const std::vector<v1::Operation> heard = listener.AwaitDone();
  EXPECT_LT(heard.size(), 2000);
  EXPECT_EQ(heard.back().progress().trials_done(), 20000);
  EXPECT_EQ(heard.back().state(), v1::Operation::STATE_SUCCEEDED);
  (*stop)();
}

TEST(Watching, AFinishedOperationIsToldOnce) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto started = operations.Start(Wanted("a"));
  Succeed(operations, started->live);
  Listener listener;
  const auto stop = operations.Watch(started->operation.name(), listener.watcher());
  ASSERT_TRUE(stop.ok());
  EXPECT_EQ(listener.AwaitDone().size(), 1);
  (*stop)();
}

TEST(Watching, NobodyIsToldAfterUnsubscribing) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto started = operations.Start(Wanted("a"));
  Listener listener;
  Listener other;
  const auto stop = operations.Watch(started->operation.name(), listener.watcher());
  const auto stop_other = operations.Watch(started->operation.name(), other.watcher());
  listener.AwaitFirst();
  (*stop)();
  const size_t heard = listener.count();
  Succeed(operations, started->live);
  other.AwaitDone();
  EXPECT_EQ(listener.count(), heard);
  (*stop_other)();
  (*stop)();  // twice does no harm
}

TEST(Watching, AWatcherMayUnsubscribeItself) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto started = operations.Start(Wanted("a"));
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> stop;
  bool left = false;
  std::unique_lock<std::mutex> lock(mutex);
  stop = *operations.Watch(started->operation.name(), [&](const v1::Operation&) {
    const std::lock_guard<std::mutex> inner(mutex);
    stop();
    left = true;
    changed.notify_all();
  });
  changed.wait(lock, [&] { return left; });
}

TEST(Watching, AnUnknownOperationIsNotFound) {
  store::FakeStore store;
  Operations operations(&store.queue());
  EXPECT_TRUE(absl::IsNotFound(operations.Watch("operations/none", [](const v1::Operation&) {}).status()));
  EXPECT_TRUE(absl::IsNotFound(operations.Get("operations/none").status()));
}

TEST(LiveOperation, ItsElapsedTimeIsOfAClockThatNobodySets) {
  absl::Duration now = absl::Hours(5);
  v1::Operation operation;
  operation.set_name("operations/1");
  LiveOperation live(
      operation, [] {}, [&] { return now; });
  ASSERT_TRUE(live.Begin());
  now += absl::Seconds(90);
  EXPECT_EQ(live.Snapshot().progress().elapsed().seconds(), 90);
  live.Update([](v1::Operation& last) { last.set_done(true); });
  now += absl::Seconds(90);
  EXPECT_EQ(live.Snapshot().progress().elapsed().seconds(), 90);
}

}  // namespace
}  // namespace attune::jobs
