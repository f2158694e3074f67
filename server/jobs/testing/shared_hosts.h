// Several hosts, and gateways, that share a store, each with a tuner of its own and fake cards.
#ifndef ATTUNE_SERVER_JOBS_TESTING_SHARED_HOSTS_H_
#define ATTUNE_SERVER_JOBS_TESTING_SHARED_HOSTS_H_

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

class SharedHostsTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLease = absl::Milliseconds(400);

  static v1::Device FirstCard(const std::string& host) {
    v1::Device card = catalog::FakeDevice();
    card.set_uuid("GPU-first-of-" + host);
    return card;
  }
  static v1::Device SecondCard() {
    v1::Device card = catalog::FakeDevice();
    card.set_id("cuda:1");
    card.set_uuid("GPU-second");
    return card;
  }

  struct Member {
    Member(SharedHostsTest& test, const std::string& name) : device(FirstCard(name)), host(catalog::FakeHost()) {
      host.devices = {device.device()};
      device.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
      host.fleet = test.fleet_;
    }
    supervisor::FakeCompilePool pool;
    supervisor::FakeDeviceWorker device;
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
    auto member = std::make_unique<Member>(*this, name);
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

  // Of the class.
  v1::SweepRequest SweepOf(const std::vector<std::string>& problems) {
    v1::SweepRequest request;
    request.mutable_plan()->set_device_id(alias());
    request.mutable_plan()->set_policy(v1::POLICY_HOT);
    auto& shape = *request.mutable_plan()->add_shapes();
    for (const std::string& problem : problems) shape.add_problem(problem);
    return request;
  }
  v1::SweepRequest SweepOfTwo() { return SweepOf({"b1.h1.q64.d64.f16", "b1.h1.q128.d64.f16"}); }

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
    void Hold(Member& member) { Hold(member.device); }
    void Hold(supervisor::FakeDeviceWorker& card) {
      card.ScriptTrial([this, &card](const worker::v1::TrialRequest& request) {
        begun_.release();
        open_.wait();
        return card.Good(request.candidate());
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

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TESTING_SHARED_HOSTS_H_
