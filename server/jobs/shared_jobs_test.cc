// Hosts that share a store: work for a class is done by whoever has cards of it, wherever it was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/jobs/testing/shared_hosts.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using SharedJobsTest = SharedHostsTest;

TEST_F(SharedJobsTest, AGatewaysTuningOfAClassIsDoneByAHostThatHasIt) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  const std::string name = Tune(*gateway, alias());
  const v1::Operation done = AwaitEnd(*gateway, name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_TRUE(done.tune().promoted());
  EXPECT_EQ(done.progress().device_id(), "hosts/a/devices/cuda:0");
  EXPECT_THAT(done.title(), HasSubstr(" on " + alias()));
  EXPECT_EQ(store_.queue().Get(name)->holder, "a");
}

TEST_F(SharedJobsTest, WhatNamesAHostsCardIsThatHosts) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  const auto b = Make("b");
  for (const char* name : {"a", "b"}) {
    const v1::Operation done = AwaitEnd(*gateway, Tune(*gateway, absl::StrCat("hosts/", name, "/devices/cuda:0")));
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    EXPECT_EQ(store_.queue().Get(done.name())->holder, name);
  }
  const v1::Operation own = AwaitEnd(*a, Tune(*a, "hosts/a/devices/cuda:0"));
  EXPECT_EQ(store_.queue().Get(own.name())->holder, "a");
}

TEST_F(SharedJobsTest, EqualRequestsOfAClassAreOneJobWhereverTheyCome) {
  const auto one = Make("one", /*gateway=*/true);
  const auto two = Make("two", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  EXPECT_EQ(Tune(*one, alias()), Tune(*two, alias()));
  EXPECT_EQ(Tune(*one, fingerprint()), Tune(*two, alias()));
}

TEST_F(SharedJobsTest, EqualRequestsOfAClassAreOneJobWhateverAliasItHas) {
  const auto one = Make("one", /*gateway=*/true);
  const auto two = Make("two", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  // The second has heard of another class of that name first.
  std::vector<v1::Host> hosts(1);
  hosts[0].set_name("hosts/b");
  hosts[0].set_state(v1::Host::STATE_LIVE);
  *hosts[0].add_devices() = a->host.devices.front();
  hosts[0].mutable_devices(0)->set_fingerprint("another L4");
  two->host.fleet = std::make_shared<catalog::Fleet>();
  two->host.fleet->Set(hosts);
  hosts.insert(hosts.end(), hosts_.begin(), hosts_.end());
  two->host.fleet->Set(hosts);
  ASSERT_NE(two->host.fleet->FindClass(fingerprint())->id(), alias());
  EXPECT_EQ(Tune(*one, alias()), Tune(*two, two->host.fleet->FindClass(fingerprint())->id()));
}

TEST_F(SharedJobsTest, AHostThatDrainsClaimsNothing) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  a->takes_work = false;
  const std::string name = Tune(*a, alias());
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(name)->epoch, 0);
  const auto b = Make("b");
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(name)->holder, "b");
}

TEST_F(SharedJobsTest, WhatWaitsAtAHostThatBeginsToDrainIsLeftToOthers) {
  Gate gate;
  const auto a = Make("a");
  gate.Hold(*a);
  // As many as the card's lane has threads for.
  for (const char* problem : {"b1.h1.q32.d64.f16", "b1.h1.q64.d64.f16"}) {
    ASSERT_TRUE(a->tuner().Tune(Request("cuda:0", problem)).ok());
  }
  gate.AwaitTrial();
  const std::string name = Tune(*a, alias());
  a->takes_work = false;
  gate.Open();
  AwaitTrue("the end of what it has begun", [&] { return a->tuner().IsIdle("cuda:0"); });
  EXPECT_EQ(store_.queue().Get(name)->epoch, 0);
  const auto b = Make("b");
  EXPECT_EQ(AwaitEnd(*a, name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(name)->holder, "b");
}

// One that would wait behind what runs there is another host's to begin.
TEST_F(SharedJobsTest, AHostHoldsWhatItsCardCanBeginAndNoMore) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string first = TuneAndHold(*gateway, gate);
  const std::string second = Tune(*gateway, alias());
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(second)->epoch, 0);
  const auto b = Make("b");
  EXPECT_EQ(AwaitEnd(*gateway, second).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(second)->holder, "b");
  gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, first).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedJobsTest, WhatWaitsBehindAnotherWhereItWasAskedForIsTakenByAHostThatIsFree) {
  Gate gate;
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string first = TuneAndHold(*a, gate);
  const std::string second = Tune(*a, alias());
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(second)->epoch, 0);
  const v1::Operation waits = *a->tuner().GetOperation(second);
  EXPECT_EQ(waits.state(), v1::Operation::STATE_QUEUED);
  EXPECT_EQ(waits.progress().queue_position(), 1);
  EXPECT_EQ(waits.progress().waits_for(), first);
  const auto b = Make("b");
  EXPECT_EQ(AwaitEnd(*a, second).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(second)->holder, "b");
  gate.Open();
  EXPECT_EQ(AwaitEnd(*a, first).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedJobsTest, WhatWaitsWhereItWasAskedForBeginsThereOnceTheCardIsFree) {
  Gate gate;
  const auto a = Make("a");
  gate.Hold(*a);
  std::vector<std::string> names;
  for (const char* problem : {"b1.h1.q32.d64.f16", "b1.h1.q64.d64.f16", "b1.h1.q128.d64.f16"}) {
    names.push_back(a->tuner().Tune(Request(alias(), problem))->name());
  }
  gate.AwaitTrial();
  gate.Open();
  for (const std::string& name : names) EXPECT_EQ(AwaitEnd(*a, name).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedJobsTest, AHostClaimsNoSweepBesideAnother) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string first = gateway->tuner().Sweep(SweepOfTwo())->name();
  gate.AwaitTrial();
  v1::SweepRequest other = SweepOfTwo();
  other.mutable_plan()->mutable_shapes(0)->set_problem(0, "b1.h1.q32.d64.f16");
  const std::string second = gateway->tuner().Sweep(other)->name();
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(second)->epoch, 0);
  gate.Open();
  for (const std::string& name : {first, second}) {
    EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
  }
}

TEST_F(SharedJobsTest, AHostThatGoesOnWithItsJobAfterAnOutageClaimsNoOther) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string first = TuneAndHold(*gateway, gate);
  const std::string second = Tune(*gateway, alias());
  // Claims are answered before the first renewal is.
  store_.queue().FailRenewals(absl::UnavailableError("the database is away"));
  AwaitTrue("the end of its lease", [&] { return store_.queue().Get(first)->leased_until < absl::Now(); });
  Gate again;
  again.Hold(*a);
  gate.Open();  // the job stops between two trials
  AwaitTrue("the job to stop", [&] { return a->tuner().IsIdle("cuda:0"); });
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(second)->epoch, 0) << "it does not know what it goes on with";
  EXPECT_EQ(store_.queue().Get(first)->epoch, 1) << "it claims nothing, its own job neither";
  store_.queue().FailRenewals(absl::OkStatus());
  again.AwaitTrial();
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(first)->epoch, 2);
  EXPECT_EQ(store_.queue().Get(second)->epoch, 0);
  again.Open();
  for (const std::string& name : {first, second}) {
    EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
  }
}

const absl::Status kHeld = absl::FailedPreconditionError("device cuda:0 (L4) is in use by process 7");

TEST_F(SharedJobsTest, AHostWhoseCardAnotherProcessHoldsLeavesItsClassToOthers) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  a->device.set_available(kHeld);
  ASSERT_TRUE(a->tuner().Resume().ok());
  const std::string name = Tune(*a, alias());
  AwaitLooks(*a);
  const store::Job waits = *store_.queue().Get(name);
  EXPECT_EQ(waits.epoch, 0);
  EXPECT_EQ(waits.operation.state(), v1::Operation::STATE_QUEUED);
  EXPECT_EQ(waits.operation.progress().message(),
            "waits for a card that is free; on host a, device cuda:0 (L4) is in use by process 7");
  const auto b = Make("b");
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(name)->holder, "b");
}

TEST_F(SharedJobsTest, WhatWaitsForOneCardWhereItWasAskedForBeginsOnAnotherThatIsFreeByNow) {
  Gate gate;
  const auto a = Make("a", /*gateway=*/false, /*start=*/true, /*cards=*/2);
  gate.Hold(*a);
  a->second.set_available(kHeld);
  const std::string first = Tune(*a, alias());
  gate.AwaitTrial();
  const std::string second = a->tuner().Tune(Request(alias(), "b1.h1.q32.d64.f16"))->name();
  AwaitLooks(*a);
  EXPECT_EQ(a->tuner().GetOperation(second)->state(), v1::Operation::STATE_QUEUED);
  a->second.set_available(absl::OkStatus());
  EXPECT_EQ(AwaitEnd(*a, second).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_FALSE(a->tuner().GetOperation(first)->done());
  gate.Open();
  EXPECT_EQ(AwaitEnd(*a, first).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedJobsTest, AHostClaimsForItsCardOnceNobodyElseHoldsIt) {
  const auto a = Make("a");
  a->device.set_available(kHeld);
  const std::string name = Tune(*a, alias());
  AwaitLooks(*a);
  EXPECT_EQ(store_.queue().Get(name)->epoch, 0);
  a->device.set_available(absl::OkStatus());
  EXPECT_EQ(AwaitEnd(*a, name).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedJobsTest, AJobWhoseCardTurnsOutToBeHeldGoesBackToTheQueueAndWasNotLost) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  a->device.HoldAtOpen(kHeld);
  ASSERT_TRUE(a->tuner().Resume().ok());
  const std::string name = Tune(*gateway, alias());
  AwaitTrue("its return", [&] {
    const store::Job job = *store_.queue().Get(name);
    return job.epoch > 0 && job.holder.empty();
  });
  AwaitLooks(*a);
  const store::Job given = *store_.queue().Get(name);
  EXPECT_EQ(given.epoch, 1) << "it is not claimed again";
  EXPECT_THAT(given.lost_by, IsEmpty());
  EXPECT_EQ(given.operation.state(), v1::Operation::STATE_QUEUED);
  EXPECT_THAT(given.operation.progress().message(), HasSubstr("on host a, device cuda:0 (L4) is in use by process 7"));
  const auto b = Make("b");
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(name)->holder, "b");
}

TEST_F(SharedJobsTest, WhatNamesACardThatIsHeldFails) {
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  a->device.HoldAtOpen(kHeld);
  ASSERT_TRUE(a->tuner().Resume().ok());
  const v1::Operation done = AwaitEnd(*a, Tune(*a, "cuda:0"));
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_EQ(done.error().message(), kHeld.message());
}

TEST_F(SharedJobsTest, ALostHostsJobGoesOnElsewhere) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  const std::string name = Tune(*gateway, alias());
  const auto lost = store_.queue().Claim("gone", {{fingerprint(), 0}}, absl::ZeroDuration());
  ASSERT_EQ((*lost)->name, name);
  ASSERT_TRUE(a->tuner().Resume().ok());
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(store_.queue().Get(name)->lost_by, ElementsAre("gone"));
  EXPECT_TRUE(store::IsStale(store_.queue().Update({name, (*lost)->epoch}, v1::Operation())));
}

TEST_F(SharedJobsTest, WhatThreeHostsWereLostWithFails) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  const std::string name = Tune(*gateway, alias());
  for (const char* host : {"x", "y", "z"}) {
    ASSERT_TRUE((*store_.queue().Claim(host, {{fingerprint(), 0}}, absl::ZeroDuration())).has_value());
  }
  ASSERT_TRUE(a->tuner().Resume().ok());
  const v1::Operation done = AwaitEnd(*gateway, name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_EQ(done.error().message(), "its host was lost 3 times (x, y, z): what it runs may be what ends them");
  EXPECT_TRUE(store_.trials().empty());
}

TEST_F(SharedJobsTest, WhatNobodyHoldsIsCancelledByWhomItIsAskedOf) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto other = Make("other", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  const std::string name = Tune(*gateway, alias());
  const absl::StatusOr<v1::Operation> cancelled = other->tuner().Cancel(name);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::Operation::STATE_CANCELLED);
}

TEST_F(SharedJobsTest, WhoWatchesHearsThatTheStoreIsAwayAndWhenItIsBack) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string name = Tune(*gateway, alias());
  std::mutex mutex;
  v1::OperationProgress last;
  const auto stop = gateway->tuner().Watch(name, [&](const v1::Operation& operation) {
    const std::lock_guard<std::mutex> lock(mutex);
    last = operation.progress();
  });
  ASSERT_TRUE(stop.ok()) << stop.status();
  const auto await = [&](bool waits) {
    AwaitTrue(waits ? "the store is away" : "the store is there", [&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return last.phase() == v1::OperationProgress::PHASE_TRIALS &&
             (last.message() == "waiting for the store: the database is away") == waits;
    });
  };
  await(false);
  store_.queue().FailGets(absl::UnavailableError("the database is away"));
  await(true);
  store_.queue().FailGets(absl::OkStatus());
  await(false);
  (*stop)();
  gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedJobsTest, ProgressIsSeenAndAJobIsCancelledByWayOfAnother) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string name = Tune(*gateway, alias());
  const v1::Operation running = Await(*gateway, name, [](const v1::Operation& operation) {
    return operation.progress().phase() == v1::OperationProgress::PHASE_TRIALS;
  });
  EXPECT_EQ(running.state(), v1::Operation::STATE_RUNNING);
  EXPECT_EQ(running.progress().device_id(), "hosts/a/devices/cuda:0");
  EXPECT_EQ(gateway->tuner().GetOperation(name)->state(), v1::Operation::STATE_RUNNING);
  ASSERT_TRUE(gateway->tuner().Cancel(name).ok());
  AwaitRenewals(name);
  gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_CANCELLED);
}

}  // namespace
}  // namespace attune::jobs
