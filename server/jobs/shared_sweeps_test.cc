// Sweeps of a class: their problems are done by every host that has a card of it free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/jobs/testing/shared_hosts.h"

namespace attune::jobs {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

class SharedSweepsTest : public SharedHostsTest {
 protected:
  static std::string ProblemOf(int number) { return absl::StrCat("b1.h", number, ".q128.d64.f16"); }
  v1::SweepRequest SweepOfMany(int count) {
    std::vector<std::string> problems;
    for (int i = 1; i <= count; ++i) problems.push_back(ProblemOf(i));
    return SweepOf(problems);
  }
  static std::string Sweep(Member& member, const v1::SweepRequest& request) {
    const absl::StatusOr<v1::Operation> started = member.tuner().Sweep(request);
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? started->name() : "";
  }
  std::vector<v1::Operation> PartsOf(const std::string& sweep) {
    return store_.queue().List({.parent = sweep}, 100, "")->items;
  }
  // Of the part with that problem, once it is there.
  std::string AwaitPart(const std::string& sweep, const std::string& problem) {
    std::string name;
    AwaitTrue("a part for " + problem, [&] {
      for (const v1::Operation& part : PartsOf(sweep)) {
        if (part.problem() == problem) name = part.name();
      }
      return !name.empty();
    });
    return name;
  }
  // Who has leased parts of it, and how many of each that have not ended.
  std::map<std::string, int> HoldersOf(const std::string& sweep) {
    std::map<std::string, int> holders;
    for (const v1::Operation& part : PartsOf(sweep)) {
      const store::Job job = *store_.queue().Get(part.name());
      if (!job.operation.done()) ++holders[job.holder];
    }
    return holders;
  }
  static std::set<std::string> CardsOf(const v1::SweepReport& report) {
    std::set<std::string> cards;
    for (const v1::SweepReport::Row& row : report.rows()) cards.insert(row.device_id());
    return cards;
  }
  // As often as each problem's variants were tried, on any card. Empty: of all problems.
  std::map<std::string, int> Tries(const std::string& problem = "") {
    std::map<std::string, int> tries;
    for (const v1::Trial& trial : store_.trials()) {
      if (!problem.empty() && trial.problem_text() != problem) continue;
      ++tries[absl::StrCat(trial.problem_text(), " ", trial.variant().text())];
    }
    return tries;
  }
  void Register(const std::string& name) {
    v1::Host host;
    host.set_name("hosts/" + name);
    ASSERT_TRUE(store_.hosts().Register(host, 1).ok());
  }
};

TEST_F(SharedSweepsTest, ASweepOfAClassIsDoneByAHostThatHasItWithItsParts) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  const absl::StatusOr<v1::Operation> started = gateway->tuner().Sweep(SweepOfTwo());
  ASSERT_TRUE(started.ok()) << started.status();
  const v1::Operation done = AwaitEnd(*gateway, started->name());
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.sweep().rows_size(), 2);
  EXPECT_EQ(done.sweep().device_id(), "hosts/a/devices/cuda:0");
}

// The sweep's host is lost with a part of its own under way and another that it has not begun.
TEST_F(SharedSweepsTest, ALostHostsSweepGoesOnElsewhereFromItsParts) {
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

TEST_F(SharedSweepsTest, AllHostsOfTheClassWorkOnItsProblemsSideBySide) {
  Gate gates[3];
  const auto gateway = Make("gateway", /*gateway=*/true);
  const std::vector<std::shared_ptr<Member>> hosts = {Make("a"), Make("b"), Make("c")};
  for (size_t i = 0; i < hosts.size(); ++i) gates[i].Hold(*hosts[i]);
  const std::string name = Sweep(*gateway, SweepOfMany(8));
  for (Gate& gate : gates) gate.AwaitTrial();
  EXPECT_THAT(HoldersOf(name), ::testing::IsSupersetOf({Pair("a", 1), Pair("b", 1), Pair("c", 1)}));
  const v1::Operation running = Await(*gateway, name, [](const v1::Operation& operation) {
    const std::string& message = operation.progress().message();
    return absl::StrContains(message, " on hosts/a/devices/cuda:0: ") &&
           absl::StrContains(message, " on hosts/b/devices/cuda:0: ") &&
           absl::StrContains(message, " on hosts/c/devices/cuda:0: ");
  });
  EXPECT_FALSE(running.done()) << running.DebugString();
  for (Gate& gate : gates) gate.Open();
  const v1::Operation done = AwaitEnd(*gateway, name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  ASSERT_THAT(done.sweep().rows(), SizeIs(8));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(done.sweep().rows(i).problem(), ProblemOf(i + 1)) << "in the plan's order";
    EXPECT_EQ(done.sweep().rows(i).outcome(), v1::SweepReport::OUTCOME_NEW);
  }
  EXPECT_THAT(CardsOf(done.sweep()),
              ElementsAre("hosts/a/devices/cuda:0", "hosts/b/devices/cuda:0", "hosts/c/devices/cuda:0"));
  EXPECT_EQ(done.sweep().device_id(), "hosts/a/devices/cuda:0,hosts/b/devices/cuda:0,hosts/c/devices/cuda:0");
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 1)));
}

TEST_F(SharedSweepsTest, AHostsCardsAreAllPutToWork) {
  Gate first;
  Gate second;
  const auto a = Make("a", /*gateway=*/false, /*start=*/true, /*cards=*/2);
  first.Hold(*a);
  second.Hold(a->second);
  const std::string name = Sweep(*a, SweepOfMany(4));
  first.AwaitTrial();
  second.AwaitTrial();
  first.Open();
  second.Open();
  EXPECT_THAT(CardsOf(AwaitEnd(*a, name).sweep()), ElementsAre("hosts/a/devices/cuda:0", "hosts/a/devices/cuda:1"));
}

// One waits behind each card's, and no more; where the sweep's time is limited, none.
TEST_F(SharedSweepsTest, FewPartsWaitInTheQueue) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string name = Sweep(*gateway, SweepOfMany(6));
  gate.AwaitTrial();
  AwaitPart(name, ProblemOf(2));
  AwaitLooks(*a);
  EXPECT_THAT(HoldersOf(name), ElementsAre(Pair("", 1), Pair("a", 1)));
  ASSERT_TRUE(gateway->tuner().Cancel(name).ok());
  gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_CANCELLED);

  Gate again;
  again.Hold(*a);
  v1::SweepRequest limited = SweepOfMany(7);
  limited.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(3600);
  const std::string other = Sweep(*gateway, limited);
  again.AwaitTrial();
  AwaitLooks(*a);
  EXPECT_THAT(HoldersOf(other), ElementsAre(Pair("a", 1)));
  again.Open();
  EXPECT_THAT(AwaitEnd(*gateway, other).sweep().rows(), SizeIs(7));
}

// On the card it then goes before the problem under way, between two trials, as on a daemon alone.
TEST_F(SharedSweepsTest, ATuningIsTakenBeforeTheProblemsThatWait) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string sweep = Sweep(*gateway, SweepOfMany(6));
  gate.AwaitTrial();
  AwaitTrue("a part that waits", [&] { return PartsOf(sweep).size() == 2; });
  const std::string tuning = gateway->tuner().Tune(Request(alias(), "b1.h1.q32.d64.f16"))->name();
  AwaitTrue("its host", [&] { return store_.queue().Get(tuning)->holder == "a"; });
  EXPECT_THAT(HoldersOf(sweep), ElementsAre(Pair("", 1), Pair("a", 1)));
  gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, tuning).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(AwaitEnd(*gateway, sweep).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(SharedSweepsTest, ALostHostsProblemGoesOnElsewhere) {
  Gate gate;
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  gate.Hold(*a);
  const std::string name = Sweep(*gateway, SweepOfTwo());
  gate.AwaitTrial();
  std::optional<store::Job> lost;
  AwaitTrue("another part", [&] {
    lost = *store_.queue().Claim("gone", {{fingerprint(), 1}}, absl::ZeroDuration());
    return lost.has_value();
  });
  ASSERT_EQ(lost->parent, name);
  gate.Open();
  const v1::Operation done = AwaitEnd(*gateway, name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_THAT(done.sweep().rows(), SizeIs(2));
  EXPECT_THAT(CardsOf(done.sweep()), ElementsAre("hosts/a/devices/cuda:0"));
  EXPECT_THAT(store_.queue().Get(lost->name)->lost_by, ElementsAre("gone"));
}

// Another host takes the sweep, with what a third is at and what has ended, and repeats none of it.
TEST_F(SharedSweepsTest, WhoTakesASweepFindsWhatOthersDoOfIt) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  Gate there;
  Gate gone;
  auto first = Make("first");
  gone.Hold(*first);
  const std::string name = Sweep(*gateway, SweepOfMany(4));
  gone.AwaitTrial();
  const auto b = Make("b");
  there.Hold(*b);
  there.AwaitTrial();
  std::string bs;
  for (const v1::Operation& part : PartsOf(name)) {
    if (store_.queue().Get(part.name())->holder == "b") bs = part.name();
  }
  ASSERT_NE(bs, "");
  b->takes_work = false;  // so that the sweep is a third's
  AwaitLooks(*b);
  gone.Open();
  AwaitTrue("the end of what it is at", [&] { return store_.queue().Get(name)->operation.sweep().rows_size() > 0; });
  first->tuner().Drain(absl::Minutes(1));
  first.reset();
  std::vector<std::string> ended;
  for (const v1::Operation& part : PartsOf(name)) {
    if (part.done()) ended.push_back(part.name());
  }
  const auto c = Make("c");
  AwaitTrue("who takes the sweep", [&] { return store_.queue().Get(name)->holder == "c"; });
  AwaitTrue("all but what b is at", [&] { return store_.queue().Get(name)->operation.sweep().rows_size() == 3; });
  EXPECT_EQ(store_.queue().Get(bs)->holder, "b");
  there.Open();
  const v1::Operation done = AwaitEnd(*gateway, name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_THAT(done.sweep().rows(), SizeIs(4));
  EXPECT_THAT(PartsOf(name), SizeIs(4));
  ended.push_back(bs);
  for (const std::string& part : ended) {
    EXPECT_EQ(store_.queue().Get(part)->epoch, 1);
    EXPECT_THAT(Tries(store_.queue().Get(part)->operation.problem()), Each(Pair(::testing::_, 1)));
  }
}

TEST_F(SharedSweepsTest, CancellingItCancelsItsProblemsOnAllHosts) {
  Gate gates[2];
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  const auto b = Make("b");
  gates[0].Hold(*a);
  gates[1].Hold(*b);
  const std::string name = Sweep(*gateway, SweepOfMany(8));
  for (Gate& gate : gates) gate.AwaitTrial();
  AwaitTrue("parts that wait", [&] { return PartsOf(name).size() == 4; });
  std::vector<std::string> begun;
  std::vector<std::string> waiting;
  for (const v1::Operation& part : PartsOf(name)) {
    (store_.queue().Get(part.name())->holder.empty() ? waiting : begun).push_back(part.name());
  }
  ASSERT_THAT(begun, SizeIs(2));
  ASSERT_TRUE(gateway->tuner().Cancel(name).ok());
  for (const std::string& part : waiting) {
    EXPECT_EQ(store_.queue().Get(part)->operation.state(), v1::Operation::STATE_CANCELLED) << "no card is free for it";
  }
  for (const std::string& part : begun) AwaitRenewals(part);
  for (Gate& gate : gates) gate.Open();
  EXPECT_EQ(AwaitEnd(*gateway, name).state(), v1::Operation::STATE_CANCELLED);
  for (const std::string& part : begun) {
    EXPECT_EQ(AwaitEnd(*gateway, part).state(), v1::Operation::STATE_CANCELLED);
  }
  EXPECT_THAT(PartsOf(name), SizeIs(4)) << "no further one was made";
}

class IncumbentOfB : public SharedSweepsTest {
 protected:
  // b has timed what is served of the problem, and its part is made by another.
  void SetUp() override {
    gateway_ = Make("gateway", /*gateway=*/true);
    b_ = Make("b");
    Register("b");
    const v1::Operation tuned =
        AwaitEnd(*gateway_, gateway_->tuner().Tune(Request("hosts/b/devices/cuda:0", ProblemOf(1)))->name());
    ASSERT_TRUE(tuned.tune().promoted()) << tuned.DebugString();
    b_->takes_work = false;
    AwaitLooks(*b_);
    a_ = Make("a");  // has read what b promoted
    name_ = Sweep(*gateway_, SweepOfMany(3));
    AwaitTrue("all others", [&] { return store_.queue().Get(name_)->operation.sweep().rows_size() == 2; });
    AwaitLooks(*a_);
    part_ = AwaitPart(name_, ProblemOf(1));
  }
  v1::SweepReport::Row AwaitRow() {
    const v1::Operation done = AwaitEnd(*gateway_, name_);
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    EXPECT_THAT(done.sweep().rows(), SizeIs(3));
    return done.sweep().rows(0);
  }

  std::unique_ptr<Member> gateway_, a_, b_;
  std::string name_, part_;
};

TEST_F(IncumbentOfB, IsTimedAgainByTheCardThatTimedIt) {
  EXPECT_EQ(store_.queue().Get(part_)->epoch, 0) << "a has a free card and leaves it alone";
  EXPECT_EQ(store_.queue().Get(part_)->home, "b");
  b_->takes_work = true;
  const v1::SweepReport::Row row = AwaitRow();
  EXPECT_EQ(row.device_id(), "hosts/b/devices/cuda:0");
  EXPECT_EQ(row.outcome(), v1::SweepReport::OUTCOME_SAME) << row.detail();
}

TEST_F(IncumbentOfB, IsAnothersToTimeOnceThatHostIsGone) {
  ASSERT_TRUE(store_.hosts().Leave("hosts/b", 1).ok());
  const v1::SweepReport::Row row = AwaitRow();
  EXPECT_EQ(row.device_id(), "hosts/a/devices/cuda:0");
  EXPECT_EQ(row.outcome(), v1::SweepReport::OUTCOME_MOVED) << row.detail();
}

TEST_F(SharedSweepsTest, OneThatNamesACardStaysThere) {
  Gate gate;
  const auto a = Make("a");
  const auto b = Make("b");
  gate.Hold(*a);
  v1::SweepRequest request = SweepOfMany(3);
  request.mutable_plan()->set_device_id("cuda:0");
  const std::string name = Sweep(*a, request);
  gate.AwaitTrial();
  AwaitLooks(*b);
  EXPECT_THAT(HoldersOf(name), ElementsAre(Pair("a", 1)));
  gate.Open();
  const v1::Operation done = AwaitEnd(*b, name);
  EXPECT_EQ(done.sweep().device_id(), "cuda:0");
  EXPECT_THAT(CardsOf(done.sweep()), ElementsAre("cuda:0"));
}

// Time that one card has spent is none of another's, whatever both are called, also after the sweep has moved.
TEST_F(SharedSweepsTest, NoCardWorksForItLongerThanItsTotalTime) {
  const auto gateway = Make("gateway", /*gateway=*/true);
  const auto a = Make("a");
  v1::SweepRequest request = SweepOfMany(5);
  request.mutable_plan()->mutable_budget()->mutable_total_time()->set_nanos(1);
  const v1::SweepReport report = AwaitEnd(*gateway, Sweep(*gateway, request)).sweep();
  std::map<v1::SweepReport::Outcome, int> outcomes;
  for (const v1::SweepReport::Row& row : report.rows()) ++outcomes[row.outcome()];
  EXPECT_THAT(outcomes, ElementsAre(Pair(v1::SweepReport::OUTCOME_NEW, 1), Pair(v1::SweepReport::OUTCOME_SKIPPED, 4)));
}

}  // namespace
}  // namespace attune::jobs
