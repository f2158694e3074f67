// Hosts that share a store: work for a class is done by whoever has cards of it, wherever it was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/attune/problem.h"
#include "server/base/deadline.h"
#include "server/catalog/class_alias.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLease = absl::Milliseconds(400);

class SharedJobsTest : public ::testing::Test {
 protected:
  static v1::Device SecondCard() {
    v1::Device card = catalog::FakeDevice();
    card.set_id("cuda:1");
    card.set_uuid("GPU-second");
    return card;
  }

  struct Member {
    explicit Member(SharedJobsTest& test) : host(catalog::FakeHost()) {
      device.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
      host.fleet = test.fleet_;
    }
    supervisor::FakeCompilePool pool;
    supervisor::FakeDeviceWorker device{catalog::FakeDevice()};
    supervisor::FakeDeviceWorker second{SecondCard()};  // of a host with two
    catalog::Host host;
    std::unique_ptr<catalog::Results> results;
    std::atomic<bool> takes_work = true;
    std::atomic<int> looks = 0;  // how often it was asked that, as before each claim
    std::unique_ptr<Tuning> tuning;

    Tuner& tuner() { return tuning->tuner(); }
  };

  // A host with one card, unless it is a gateway, or with two. `start`: it takes part from now on.
  std::unique_ptr<Member> Make(const std::string& name, bool gateway = false, bool start = true, int cards = 1) {
    auto member = std::make_unique<Member>(*this);
    if (gateway) member->host.devices.clear();
    if (cards > 1) member->host.devices.push_back(SecondCard());
    catalog::NameClasses(member->host.devices);
    v1::Host& host = hosts_.emplace_back();
    host.set_name("hosts/" + name);
    host.set_state(v1::Host::STATE_LIVE);
    *host.mutable_devices() = {member->host.devices.begin(), member->host.devices.end()};
    fleet_->Set(hosts_);
    member->results = *catalog::Results::Load(store_, member->host);
    Tuning::Options options{
        .host = member->host, .store = store_, .results = *member->results, .compiler = member->pool};
    if (!gateway) options.devices = {{"cuda:0", &member->device}};
    if (cards > 1) options.devices["cuda:1"] = &member->second;
    options.holder = name;
    options.lease = kLease;
    options.shared = true;
    options.takes_work = [member = member.get()] {
      ++member->looks;
      return member->takes_work.load();
    };
    member->tuning = *Tuning::Create(options);
    if (start) {
      EXPECT_TRUE(member->tuner().Resume().ok());
    }
    return member;
  }

  std::string alias() const { return fleet_->Classes().at(0).device->id(); }
  std::string fingerprint() const { return catalog::FakeDevice().fingerprint(); }

  // Of the class, with two problems.
  v1::SweepRequest SweepOfTwo() {
    v1::SweepRequest request;
    request.mutable_plan()->set_device_id(alias());
    request.mutable_plan()->set_policy(v1::POLICY_HOT);
    auto& shape = *request.mutable_plan()->add_shapes();
    for (const char* problem : {"b1.h1.q64.d64.f16", "b1.h1.q128.d64.f16"}) shape.add_problem(problem);
    return request;
  }

  v1::TuneRequest Request(const std::string& device, const std::string& problem = "b1.h1.q128.d64.f16") {
    v1::TuneRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    request.set_device_id(device);
    request.set_policy(v1::POLICY_HOT);
    request.mutable_strategy()->set_kind(v1::Strategy::KIND_EXHAUSTIVE);
    return request;
  }
  std::string Tune(Member& member, const std::string& device) {
    const absl::StatusOr<v1::Operation> started = member.tuner().Tune(Request(device));
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? started->name() : "";
  }

  // By way of `member`, which watches it.
  static v1::Operation Await(Member& member, const std::string& name,
                             const std::function<bool(const v1::Operation&)>& wanted) {
    std::mutex mutex;
    std::condition_variable changed;
    v1::Operation last;
    bool there = false;
    const auto stop = member.tuner().Watch(name, [&](const v1::Operation& operation) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!there) last = operation;
      there = there || operation.done() || wanted(operation);
      changed.notify_all();
    });
    EXPECT_TRUE(stop.ok()) << stop.status();
    {
      std::unique_lock<std::mutex> lock(mutex);
      EXPECT_TRUE(changed.wait_until(lock, After(absl::Minutes(1)), [&] { return there; })) << last.DebugString();
    }
    (*stop)();
    return last;
  }
  static v1::Operation AwaitEnd(Member& member, const std::string& name) {
    return Await(member, name, [](const v1::Operation&) { return false; });
  }

  static void AwaitTrue(const std::string& what, const std::function<bool()>& condition) {
    const auto until = After(absl::Minutes(1));
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << what;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  // The second renewal of a job after this call: by then its holder knows what the first told.
  void AwaitRenewals(const std::string& name) {
    for (int i = 0; i < 2; ++i) {
      const absl::Time before = store_.queue().Get(name)->leased_until;
      AwaitTrue("a renewal", [&] { return store_.queue().Get(name)->leased_until > before; });
    }
  }

  // By then it has claimed what it would.
  void AwaitLooks(Member& member) {
    const int before = member.looks;
    AwaitTrue("looks for work", [&] { return member.looks >= before + 4; });
  }

  // Holds the trials of a device back. Lives longer than the device's host.
  class Gate {
   public:
    void Hold(Member& member) {
      member.device.ScriptTrial([this, &member](const worker::v1::TrialRequest& request) {
        begun_.release();
        open_.wait();
        return member.device.Good(request.candidate());
      });
    }
    void AwaitTrial() { ASSERT_TRUE(begun_.try_acquire_for(std::chrono::minutes(1))); }
    void Open() { open_.count_down(); }

   private:
    std::counting_semaphore<> begun_{0};
    std::latch open_{1};
  };

  // A tuning of another problem than Tune's, asked of `member`, has the card whose trials the gate holds back.
  std::string TuneAndHold(Member& member, Gate& gate) {
    std::string name = member.tuner().Tune(Request(alias(), "b1.h1.q32.d64.f16"))->name();
    gate.AwaitTrial();
    return name;
  }

  std::shared_ptr<catalog::Fleet> fleet_ = std::make_shared<catalog::Fleet>();
  std::vector<v1::Host> hosts_;
  store::FakeStore store_;
};

TEST_F(SharedJobsTest, AGatewaysTuningOfAClassIsDoneByAHostThatHasIt) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  const std::string name = Tune(*gateway, alias());
  const v1::Operation done = AwaitEnd(*gateway, name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_TRUE(done.tune().promoted());
  EXPECT_EQ(done.progress().device_id(), "cuda:0");
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
  EXPECT_EQ(running.progress().device_id(), "cuda:0");
  EXPECT_EQ(gateway->tuner().GetOperation(name)->state(), v1::Operation::STATE_RUNNING);
  ASSERT_TRUE(gateway->tuner().Cancel(name).ok());
  AwaitRenewals(name);
  gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_CANCELLED);
}

TEST_F(SharedJobsTest, ASweepOfAClassIsDoneByAHostThatHasItWithItsParts) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  const absl::StatusOr<v1::Operation> started = gateway->tuner().Sweep(SweepOfTwo());
  ASSERT_TRUE(started.ok()) << started.status();
  const v1::Operation done = AwaitEnd(*gateway, started->name());
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.sweep().rows_size(), 2);
  EXPECT_EQ(done.sweep().device_id(), "cuda:0");
}

// The sweep's host is lost with a part of its own under way and another that it has not begun.
TEST_F(SharedJobsTest, ALostHostsSweepGoesOnElsewhereFromItsParts) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a", /*gateway=*/false, /*start=*/false);
  const absl::StatusOr<v1::Operation> started = gateway->tuner().Sweep(SweepOfTwo());
  ASSERT_TRUE(started.ok()) << started.status();
  {
    Gate gate;
    const auto lost = Make("lost", /*gateway=*/false, /*start=*/false);
    gate.Hold(*lost);
    ASSERT_TRUE(lost->tuner().Resume().ok());
    gate.AwaitTrial();  // of a part
    store_.queue().FailWrites(absl::UnavailableError("cut off"));
    AwaitTrue("the end of its leases", [&] {
      const std::vector<store::LeasedJob> held = *store_.queue().Held();
      return std::all_of(held.begin(), held.end(), [&](const store::LeasedJob& job) {
        return store_.queue().Get(job.name)->leased_until < absl::Now();
      });
    });
    gate.Open();
    lost->tuner().Drain(absl::ZeroDuration());
  }
  store_.queue().FailWrites(absl::OkStatus());
  ASSERT_TRUE(a->tuner().Resume().ok());
  const v1::Operation done = AwaitEnd(*gateway, started->name());
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.sweep().rows_size(), 2);
  for (const v1::SweepReport::Row& row : done.sweep().rows()) {
    EXPECT_NE(row.outcome(), v1::SweepReport::OUTCOME_FAILED) << row.detail();
  }
  EXPECT_EQ(store_.queue().Get(started->name())->holder, "a");
}

}  // namespace
}  // namespace attune::jobs
