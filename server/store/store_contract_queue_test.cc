#include "gmock/gmock.h"
#include "server/store/testing/queue_contract.h"
#include "server/store/testing/unfinished.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class QueueContract : public QueueContractTest {
 protected:
  static constexpr absl::Duration kLease = absl::Seconds(60);

  static Job Make(const std::string& name, const std::string& identity = "", const std::string& request_id = "") {
    Job job;
    job.name = name;
    job.request = "request of " + identity;
    job.request_id = request_id;
    job.identity = identity;
    job.operation.set_name(name);
    job.operation.set_state(v1::Operation::STATE_QUEUED);
    return job;
  }

  void MustCreate(const std::string& name) { ASSERT_TRUE(queue().Create(Make(name), {}).ok()); }

  void MustCreatePart(const std::string& name) {
    Job job = Make(name);
    job.parent = "operations/a";
    ASSERT_TRUE(queue().Create(job, {}).ok());
  }
  std::vector<std::string> Listed(const JobFilter& filter) {
    std::vector<std::string> names;
    const Page<v1::Operation> page = queue().List(filter, 10, "").value();
    for (const v1::Operation& operation : page.items) names.push_back(operation.name());
    return names;
  }

  // The epoch of a lease that must be had; 0 when it is not to be had.
  int64_t Lease(const std::string& name, const std::string& holder) {
    const absl::StatusOr<std::optional<Job>> leased = queue().Lease(name, holder, kLease);
    EXPECT_TRUE(leased.ok()) << leased.status();
    return leased.ok() && leased->has_value() ? (*leased)->epoch : 0;
  }

  static v1::Operation Running(const std::string& message) {
    v1::Operation operation;
    operation.set_name("operations/a");
    operation.set_state(v1::Operation::STATE_RUNNING);
    operation.mutable_progress()->set_message(message);
    return operation;
  }
  static v1::Operation Ended(const std::string& message) {
    v1::Operation operation = Running(message);
    operation.set_state(v1::Operation::STATE_SUCCEEDED);
    operation.set_done(true);
    return operation;
  }
  std::string Message() { return queue().Get("operations/a")->operation.progress().message(); }

  std::vector<std::string> Leasable(const std::string& holder) { return queue().Leasable(holder).value(); }
};

TEST_P(QueueContract, JoinsAnUnfinishedJobOfTheSameIdentity) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "x"), {}).ok());
  EXPECT_EQ(queue().Create(Make("operations/b", "x"), {})->name, "operations/a");
  EXPECT_EQ(queue().Create(Make("operations/c", "y"), {})->name, "operations/c");
  Reopen();
  EXPECT_EQ(queue().Create(Make("operations/d", "x"), {})->name, "operations/a");
  EXPECT_EQ(queue().Get("operations/d").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(QueueContract, JoinsWhatAsksForTheSameInOtherWords) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "x on the first card"), {}).ok());
  const JoinTerms terms = {.others = {{"request", "x on the first card"}}};
  EXPECT_EQ(queue().Create(Make("operations/b", "x on the second card"), terms)->name, "operations/a");
}

TEST_P(QueueContract, JoinsNothingThatHasEnded) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "x"), {}).ok());
  FinishJob(queue(), Ended("done"));
  EXPECT_EQ(queue().Create(Make("operations/b", "x"), {})->name, "operations/b");
}

TEST_P(QueueContract, ARequestThatJoinedKeepsItsId) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "x", "first"), {}).ok());
  ASSERT_EQ(queue().Create(Make("operations/b", "x", "second"), {})->name, "operations/a");
  FinishJob(queue(), Ended("done"));
  Reopen();
  EXPECT_EQ(queue().Create(Make("operations/c", "x", "second"), {})->name, "operations/a");
  EXPECT_EQ(queue().Create(Make("operations/c", "x", "first"), {})->name, "operations/a");
}

TEST_P(QueueContract, ARequestIdIsOfOneRequest) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "x", "nightly"), {}).ok());
  const absl::Status refused = queue().Create(Make("operations/b", "y", "nightly"), {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("operations/a"));
}

TEST_P(QueueContract, ACreationWhoseAnswerWasLostMayBeRepeated) {
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(queue().Create(Make("operations/a", "x", "nightly"), {})->name, "operations/a");
    EXPECT_EQ(queue().Create(Make("operations/b"), {})->name, "operations/b");
  }
  EXPECT_EQ(CountUnfinished(queue()), 2U);
}

TEST_P(QueueContract, TakesNoMoreThanAreLetInAndStillJoins) {
  const JoinTerms terms = {.most_unfinished = 1};
  ASSERT_TRUE(queue().Create(Make("operations/a", "x"), terms).ok());
  EXPECT_EQ(queue().Create(Make("operations/b", "y"), terms).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(queue().Create(Make("operations/b", "x"), terms)->name, "operations/a");
  FinishJob(queue(), Ended("done"));
  EXPECT_TRUE(queue().Create(Make("operations/b", "y"), terms).ok());
}

TEST_P(QueueContract, PartsTakeNobodysPlace) {
  const JoinTerms terms = {.most_unfinished = 2};
  ASSERT_TRUE(queue().Create(Make("operations/a"), terms).ok());
  for (const char* part : {"operations/a.1", "operations/a.2", "operations/a.3"}) MustCreatePart(part);
  EXPECT_TRUE(queue().Create(Make("operations/b"), terms).ok());
  EXPECT_EQ(queue().Create(Make("operations/c"), terms).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_P(QueueContract, APartIsMadeOnceWhateverIsAskedOfIt) {
  MustCreate("operations/a");
  MustCreate("operations/b");
  MustCreatePart("operations/a.1");
  const int64_t epoch = Lease("operations/a.1", "one");
  v1::Operation ended = Ended("done");
  ended.set_name("operations/a.1");
  ASSERT_TRUE(queue().Finish({"operations/a.1", epoch}, ended).ok());
  Job again = Make("operations/a.1", "on other cards");
  again.parent = "operations/a";
  const absl::StatusOr<Job> former = queue().Create(again, {});
  ASSERT_TRUE(former.ok()) << former.status();
  EXPECT_TRUE(former->operation.done());
  EXPECT_EQ(former->request, Make("operations/a.1").request);
  again.parent = "operations/b";
  EXPECT_EQ(queue().Create(again, {}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(QueueContract, AJobWithoutIdentityIsGivenOneOnce) {
  MustCreate("operations/a");
  ASSERT_TRUE(queue().Identify("operations/a", "x").ok());
  ASSERT_TRUE(queue().Identify("operations/a", "y").ok());
  EXPECT_EQ(queue().Get("operations/a")->identity, "x");
  EXPECT_EQ(queue().Create(Make("operations/b", "x"), {})->name, "operations/a");
  MustCreate("operations/c");
  ASSERT_TRUE(queue().Identify("operations/c", "x").ok());
  EXPECT_EQ(queue().Get("operations/c")->identity, "");
  EXPECT_EQ(queue().Identify("operations/none", "x").code(), absl::StatusCode::kNotFound);
}

TEST_P(QueueContract, PartsAreListedUnderTheirParentAlone) {
  MustCreate("operations/a");
  MustCreate("operations/b");
  MustCreatePart("operations/a.1");
  MustCreatePart("operations/a.2");
  Reopen();
  EXPECT_EQ(queue().Get("operations/a.1")->parent, "operations/a");
  EXPECT_THAT(Listed({}), ElementsAre("operations/b", "operations/a"));
  EXPECT_THAT(Listed({.parent = "operations/a"}), ElementsAre("operations/a.2", "operations/a.1"));
  EXPECT_THAT(Listed({.parent = "operations/b"}), IsEmpty());
  EXPECT_THAT(Leasable("one"), ElementsAre("operations/a", "operations/b", "operations/a.1", "operations/a.2"));
  Job lost = Make("operations/c.1");
  lost.parent = "operations/c";
  EXPECT_EQ(queue().Create(lost, {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(QueueContract, PartsAreCancelledWithTheirParent) {
  MustCreate("operations/a");
  MustCreatePart("operations/a.1");
  const int64_t epoch = Lease("operations/a.1", "one");
  ASSERT_TRUE(queue().Cancel("operations/a").ok());
  EXPECT_TRUE(queue().Renew({"operations/a.1", epoch}, kLease)->cancelled);
  MustCreatePart("operations/a.2");
  EXPECT_TRUE(queue().Get("operations/a.2")->cancelled) << "made afterwards";
}

TEST_P(QueueContract, PartsAreCancelledWhenTheirParentEnds) {
  MustCreate("operations/a");
  MustCreatePart("operations/a.1");
  MustCreate("operations/b");
  FinishJob(queue(), Ended("done"));
  EXPECT_TRUE(queue().Get("operations/a.1")->cancelled);
  EXPECT_FALSE(queue().Get("operations/b")->cancelled);
  MustCreatePart("operations/a.2");
  EXPECT_TRUE(queue().Get("operations/a.2")->cancelled) << "made afterwards";
}

TEST_P(QueueContract, OneHolderAtATimeAndEachLeaseHasAGreaterEpoch) {
  MustCreate("operations/a");
  const int64_t first = Lease("operations/a", "one");
  EXPECT_GT(first, 0);
  EXPECT_EQ(Lease("operations/a", "two"), 0);
  now_ += kLease - absl::Microseconds(1);
  EXPECT_EQ(Lease("operations/a", "two"), 0);
  now_ += absl::Microseconds(1);
  EXPECT_GT(Lease("operations/a", "two"), first);
  EXPECT_EQ(queue().Lease("operations/none", "one", kLease).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(QueueContract, ALeaseOutlivesTheProcess) {
  MustCreate("operations/a");
  const int64_t epoch = Lease("operations/a", "one");
  Reopen();
  EXPECT_EQ(Lease("operations/a", "two"), 0);
  const Job job = *queue().Get("operations/a");
  EXPECT_EQ(job.holder, "one");
  EXPECT_EQ(job.epoch, epoch);
  EXPECT_EQ(job.leased_until, now_ + kLease);
  EXPECT_TRUE(queue().Update({"operations/a", epoch}, Running("on")).ok());
}

TEST_P(QueueContract, AHolderLeasesAgainWhatItsEarlierProcessHeld) {
  MustCreate("operations/a");
  const int64_t before = Lease("operations/a", "one");
  Reopen();
  const int64_t after = Lease("operations/a", "one");
  EXPECT_GT(after, before);
  EXPECT_TRUE(IsStale(queue().Update({"operations/a", before}, Running("late"))));
  EXPECT_TRUE(queue().Update({"operations/a", after}, Running("on time")).ok());
}

TEST_P(QueueContract, ARenewedLeaseLastsLonger) {
  MustCreate("operations/a");
  const int64_t epoch = Lease("operations/a", "one");
  now_ += kLease / 2;
  EXPECT_EQ(queue().Renew({"operations/a", epoch}, kLease)->leased_until, now_ + kLease);
  now_ += kLease - absl::Microseconds(1);
  EXPECT_EQ(Lease("operations/a", "two"), 0);
}

TEST_P(QueueContract, ALeaseThatHasRunOutHoldsUntilItIsTaken) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  now_ += 2 * kLease;
  EXPECT_TRUE(queue().Update(fence, Running("slow")).ok());
  EXPECT_TRUE(queue().Renew(fence, kLease).ok());
  EXPECT_EQ(Lease("operations/a", "two"), 0);
}

TEST_P(QueueContract, AStaleHolderIsRefusedEverything) {
  MustCreate("operations/a");
  const Fence stale = {"operations/a", Lease("operations/a", "one")};
  now_ += kLease;
  const Fence fence = {"operations/a", Lease("operations/a", "two")};
  for (const absl::Status& refused : {queue().Renew(stale, kLease).status(), queue().Update(stale, Running("late")),
                                      queue().Requeue(stale), queue().Finish(stale, Ended("late"))}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kAborted);
    EXPECT_TRUE(IsStale(refused)) << refused;
    EXPECT_EQ(refused.message(), "the lease of operations/a under epoch 1 is over: two holds it under epoch 2");
  }
  EXPECT_TRUE(queue().Finish(fence, Ended("in time")).ok());
  EXPECT_EQ(Message(), "in time");
}

TEST_P(QueueContract, AJobEndsOnce) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  ASSERT_TRUE(queue().Finish(fence, Ended("first")).ok());
  EXPECT_TRUE(queue().Finish(fence, Ended("again")).ok()) << "its answer may have been lost";
  EXPECT_EQ(Message(), "first");
  EXPECT_TRUE(IsStale(queue().Update(fence, Running("on"))));
  EXPECT_TRUE(IsStale(queue().Renew(fence, kLease).status()));
  EXPECT_TRUE(IsStale(queue().Requeue(fence)));
  EXPECT_EQ(Lease("operations/a", "one"), 0);
  EXPECT_THAT(Leasable("one"), IsEmpty());
}

TEST_P(QueueContract, UpdatesGoOnAndEndsEnd) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  EXPECT_EQ(queue().Update(fence, Ended("")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(queue().Finish(fence, Running("")).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(QueueContract, AJobGivenBackIsAnybodysAtOnce) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  ASSERT_TRUE(queue().Requeue(fence).ok());
  EXPECT_TRUE(queue().Requeue(fence).ok()) << "its answer may have been lost";
  EXPECT_TRUE(IsStale(queue().Update(fence, Running("late"))));
  EXPECT_THAT(Leasable("two"), ElementsAre("operations/a"));
  EXPECT_GT(Lease("operations/a", "two"), fence.epoch);
  EXPECT_TRUE(IsStale(queue().Requeue(fence)));
}

TEST_P(QueueContract, ACancellationReachesTheHolderNowAndTheNext) {
  MustCreate("operations/a");
  EXPECT_FALSE(queue().Get("operations/a")->cancelled);
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  ASSERT_TRUE(queue().Cancel("operations/a").ok());
  EXPECT_TRUE(queue().Cancel("operations/a").ok());
  EXPECT_TRUE(queue().Renew(fence, kLease)->cancelled);
  Reopen();
  now_ += 2 * kLease;
  EXPECT_TRUE((*queue().Lease("operations/a", "two", kLease))->cancelled);
  EXPECT_EQ(queue().Cancel("operations/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(QueueContract, WhatHasEndedIsNotCancelled) {
  MustCreate("operations/a");
  FinishJob(queue(), Ended("done"));
  const absl::StatusOr<Job> job = queue().Cancel("operations/a");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(job->cancelled);
  EXPECT_EQ(job->operation.state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_P(QueueContract, SaysWhatAHolderCouldLease) {
  for (const char* name : {"operations/a", "operations/b", "operations/c", "operations/d"}) MustCreate(name);
  Lease("operations/b", "one");
  now_ += kLease / 2;
  Lease("operations/c", "two");
  FinishJob(queue(), Ended("done"));
  EXPECT_THAT(Leasable("one"), ElementsAre("operations/b", "operations/d"));
  EXPECT_THAT(Leasable("two"), ElementsAre("operations/c", "operations/d"));
  now_ += kLease / 2;
  EXPECT_THAT(Leasable("two"), ElementsAre("operations/b", "operations/c", "operations/d"));
}

INSTANTIATE_TEST_SUITE_P(Store, QueueContract, testing::ValuesIn(QueueImplementations()), QueueImplementationName);

TEST_P(QueueContract, AllLeasesOfAHolderAreRenewedTogether) {
  for (const char* name : {"operations/b", "operations/a", "operations/c"}) MustCreate(name);
  const int64_t epoch = Lease("operations/b", "one");
  Lease("operations/a", "one");
  Lease("operations/c", "two");
  ASSERT_TRUE(queue().Cancel("operations/a").ok());
  now_ += kLease;
  const absl::StatusOr<std::vector<LeasedJob>> held = queue().RenewAll("one", kLease);
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_EQ(held->size(), 2);
  EXPECT_EQ((*held)[0].name, "operations/a");
  EXPECT_TRUE((*held)[0].cancelled);
  EXPECT_EQ((*held)[1].name, "operations/b");
  EXPECT_FALSE((*held)[1].cancelled);
  EXPECT_EQ((*held)[1].epoch, epoch);
  EXPECT_THAT(*queue().Leasable("three"), ElementsAre("operations/c")) << "the other holder's has run out";
  ASSERT_TRUE(queue().Finish({"operations/b", epoch}, Ended("done")).ok());
  const absl::StatusOr<std::vector<LeasedJob>> all = queue().Held();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2) << "what has ended is held by nobody";
  EXPECT_EQ((*all)[1].holder, "two");
  EXPECT_THAT(*queue().RenewAll("three", kLease), IsEmpty());
}

}  // namespace
}  // namespace attune::store
