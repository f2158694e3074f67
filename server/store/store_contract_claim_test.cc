// Jobs of a class, which any host with cards of it may claim. SQLite's store has one host: there all jobs are its own.
#include "gmock/gmock.h"
#include "server/store/testing/queue_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ClaimContract : public QueueContractTest {
 protected:
  static constexpr absl::Duration kLease = absl::Seconds(20);

  void SetUp() override {
    if (GetParam().name == "sqlite") GTEST_SKIP() << "one process alone has it";
    QueueContractTest::SetUp();
  }

  void MustCreate(const std::string& name, const std::string& device_class, int64_t priority = 0,
                  const std::string& identity = "") {
    Job job;
    job.name = name;
    job.request = "request";
    job.identity = identity;
    job.device_class = device_class;
    job.priority = priority;
    job.operation.set_name(name);
    ASSERT_TRUE(queue().Create(job, {}).ok());
  }

  std::optional<Job> Claim(const std::string& holder, const std::vector<Room>& rooms) {
    absl::StatusOr<std::optional<Job>> claimed = queue().Claim(holder, rooms, kLease);
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    return claimed.value_or(std::nullopt);
  }
  std::string NameClaimed(const std::string& holder, const std::vector<Room>& rooms) {
    const std::optional<Job> job = Claim(holder, rooms);
    return job.has_value() ? job->name : "";
  }
};

INSTANTIATE_TEST_SUITE_P(, ClaimContract, testing::ValuesIn(QueueImplementations()), QueueImplementationName);

TEST_P(ClaimContract, IsOfTheClassesAndPrioritiesThatThereIsRoomFor) {
  MustCreate("operations/of_l4", "l4");
  MustCreate("operations/background", "h200", 1);
  EXPECT_EQ(NameClaimed("one", {}), "");
  EXPECT_EQ(NameClaimed("one", {{"h200", 0}, {"l4", 1}}), "");
  EXPECT_EQ(NameClaimed("one", {{"h200", 1}}), "operations/background");
  const std::optional<Job> job = Claim("one", {{"h200", 0}, {"l4", 0}});
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->name, "operations/of_l4");
  EXPECT_EQ(job->device_class, "l4");
  EXPECT_EQ(job->holder, "one");
  EXPECT_EQ(job->epoch, 1);
  EXPECT_EQ(NameClaimed("one", {{"l4", 0}}), "") << "what it holds itself is no new work";
}

TEST_P(ClaimContract, TakesTheMostUrgentOfThoseTheOldest) {
  MustCreate("operations/d", "l4", 1);
  MustCreate("operations/c", "l4");
  MustCreate("operations/b", "h200");
  const std::vector<Room> rooms = {{"l4", 1}, {"h200", 0}, {"l4", 0}};
  EXPECT_EQ(NameClaimed("one", rooms), "operations/c");
  EXPECT_EQ(NameClaimed("two", rooms), "operations/b");
  EXPECT_EQ(NameClaimed("one", rooms), "operations/d");
}

TEST_P(ClaimContract, LeavesWhatIsOfNoClassToItsHost) {
  MustCreate("operations/own", "");
  MustCreate("operations/of_l4", "l4");
  EXPECT_THAT(*queue().Leasable("one"), ElementsAre("operations/own"));
  EXPECT_EQ(NameClaimed("one", {{"l4", 0}}), "operations/of_l4");
  EXPECT_EQ(NameClaimed("one", {{"l4", 0}}), "");
}

TEST_P(ClaimContract, TakesWhatALostHolderHadBeforeWhatNobodyHeld) {
  MustCreate("operations/a", "l4", 1);
  MustCreate("operations/b", "l4");
  const std::optional<Job> lost = Claim("one", {{"l4", 1}});
  ASSERT_TRUE(lost.has_value());
  now_ += kLease - absl::Seconds(1);
  EXPECT_EQ(NameClaimed("two", {{"l4", 1}}), "") << "it may still be worked on";
  now_ += absl::Seconds(1);
  const std::optional<Job> taken = Claim("two", {{"l4", 0}, {"l4", 1}});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->name, "operations/a");
  EXPECT_EQ(taken->epoch, lost->epoch + 1);
  EXPECT_THAT(taken->lost_by, ElementsAre("one"));
  EXPECT_TRUE(IsStale(queue().Update({lost->name, lost->epoch}, lost->operation)));
}

TEST_P(ClaimContract, LeavesWhatALostHolderHadToWhoHasRoomForIt) {
  MustCreate("operations/a", "l4", 1);
  ASSERT_TRUE(Claim("one", {{"l4", 1}}).has_value());
  now_ += kLease;
  EXPECT_EQ(NameClaimed("two", {{"l4", 0}, {"h200", 1}}), "");
  EXPECT_EQ(NameClaimed("three", {{"h200", 0}, {"l4", 1}}), "operations/a");
}

TEST_P(ClaimContract, CountsEveryHolderThatLostIt) {
  MustCreate("operations/a", "l4");
  for (const char* holder : {"one", "two", "two", "three"}) {
    ASSERT_EQ(NameClaimed(holder, {{"l4", 0}}), "operations/a");
    now_ += kLease;
  }
  EXPECT_THAT(queue().Get("operations/a")->lost_by, ElementsAre("one", "two"))
      << "who takes its own again lost nothing";
  EXPECT_THAT(Claim("four", {{"l4", 0}})->lost_by, ElementsAre("one", "two", "three"));
}

TEST_P(ClaimContract, OneThatWasGivenBackWasNotLost) {
  MustCreate("operations/a", "l4");
  const std::optional<Job> job = Claim("one", {{"l4", 0}});
  ASSERT_TRUE(job.has_value());
  ASSERT_TRUE(queue().Requeue({job->name, job->epoch}).ok());
  EXPECT_THAT(Claim("two", {{"l4", 0}})->lost_by, IsEmpty());
}

TEST_P(ClaimContract, EqualRequestsForAClassAreOneJob) {
  MustCreate("operations/a", "l4", 0, "tune");
  Job again;
  again.name = "operations/b";
  again.identity = "tune";
  again.device_class = "l4";
  again.operation.set_name(again.name);
  EXPECT_EQ(queue().Create(again, {})->name, "operations/a");
}

TEST_P(ClaimContract, RenewingAllRenewsOnesOwnWhateverHasRunOut) {
  for (const char* name : {"operations/b", "operations/a", "operations/c"}) MustCreate(name, "l4");
  ASSERT_EQ(NameClaimed("one", {{"l4", 0}}), "operations/b");
  ASSERT_EQ(NameClaimed("one", {{"l4", 0}}), "operations/a");
  ASSERT_EQ(NameClaimed("two", {{"l4", 0}}), "operations/c");
  ASSERT_TRUE(queue().Cancel("operations/a").ok());
  now_ += kLease;
  const absl::StatusOr<std::vector<LeasedJob>> held = queue().RenewAll("one", kLease);
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_EQ(held->size(), 2);
  EXPECT_EQ((*held)[0].name, "operations/a");
  EXPECT_TRUE((*held)[0].cancelled);
  EXPECT_EQ((*held)[1].name, "operations/b");
  EXPECT_EQ((*held)[1].epoch, 1);
  EXPECT_EQ(NameClaimed("three", {{"l4", 0}}), "operations/c");
  EXPECT_EQ(NameClaimed("three", {{"l4", 0}}), "");
}

}  // namespace
}  // namespace attune::store
