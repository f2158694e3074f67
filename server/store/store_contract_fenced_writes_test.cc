#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

// What is written for a job beside the queue: trials and promotions.
class FencedWriteContract : public StoreContract {
 protected:
  static constexpr absl::Duration kLease = absl::Seconds(60);

  Queue& queue() { return store().queue(); }

  static Job Make(const std::string& name) {
    Job job;
    job.name = name;
    job.operation.set_name(name);
    return job;
  }

  void MustCreate(const std::string& name) { ASSERT_TRUE(queue().Create(Make(name), {}).ok()); }

  void MustCreatePart(const std::string& name) {
    Job job = Make(name);
    job.parent = "operations/a";
    ASSERT_TRUE(queue().Create(job, {}).ok());
  }

  int64_t Lease(const std::string& name, const std::string& holder) {
    const absl::StatusOr<std::optional<Job>> leased = queue().Lease(name, holder, kLease);
    EXPECT_TRUE(leased.ok()) << leased.status();
    return leased.ok() && leased->has_value() ? (*leased)->epoch : 0;
  }

  static v1::Operation Ended() {
    v1::Operation operation;
    operation.set_name("operations/a");
    operation.set_done(true);
    return operation;
  }
};

TEST_P(FencedWriteContract, TrialsOfAJobAreThoseOfItsPartsToo) {
  MustCreate("operations/a");
  MustCreatePart("operations/a.1");
  v1::Trial trial = SampleTrial();
  trial.set_job("operations/a.1");
  ASSERT_TRUE(store().AppendTrial(trial, {}).ok());
  v1::TrialFilter filter;
  for (const auto& [job, trials] : {std::pair("operations/a", 1U), {"operations/a.1", 1U}, {"operations/b", 0U}}) {
    filter.set_job(job);
    EXPECT_EQ(store().ListTrials(filter, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), trials) << job;
  }
}

TEST_P(FencedWriteContract, AStaleHolderWritesNothing) {
  const std::string trial = Append(SampleTrial());
  MustCreate("operations/a");
  const Fence stale = {"operations/a", Lease("operations/a", "one")};
  now_ += kLease;
  ASSERT_GT(Lease("operations/a", "two"), stale.epoch);
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(trial);
  for (const absl::Status& refused : {store().AppendTrial(SampleTrial(), NewWrite(stale)).status(),
                                      store().Promote(incumbent, "", NewWrite(stale)).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kAborted);
    EXPECT_TRUE(IsStale(refused)) << refused;
    EXPECT_EQ(refused.message(), "the lease of operations/a under epoch 1 is over: two holds it under epoch 2");
  }
  EXPECT_EQ(store().ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 1);
  EXPECT_TRUE(store().ListIncumbents({}, 10, "")->items.empty());
}

TEST_P(FencedWriteContract, NothingIsWrittenForAJobThatHasEnded) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  ASSERT_TRUE(queue().Finish(fence, Ended()).ok());
  EXPECT_TRUE(IsStale(store().AppendTrial(SampleTrial(), NewWrite(fence)).status()));
}

TEST_P(FencedWriteContract, NothingIsWrittenForAJobThatWasGivenBack) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  ASSERT_TRUE(queue().Requeue(fence).ok());
  EXPECT_TRUE(IsStale(store().AppendTrial(SampleTrial(), NewWrite(fence)).status()));
}

TEST_P(FencedWriteContract, AWriteThatIsRepeatedIsMadeOnce) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  const JobWrite append = NewWrite(fence);
  const std::string trial = *store().AppendTrial(SampleTrial(), append);
  EXPECT_EQ(*store().AppendTrial(SampleTrial(), append), trial);
  EXPECT_NE(*store().AppendTrial(SampleTrial(), NewWrite(fence)), trial);
  EXPECT_EQ(store().ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 2);

  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(trial);
  const JobWrite promote = NewWrite(fence);
  const absl::StatusOr<v1::Incumbent> first = store().Promote(incumbent, "", promote);
  ASSERT_TRUE(first.ok()) << first.status();
  Reopen();
  const absl::StatusOr<v1::Incumbent> again = store().Promote(incumbent, "", promote);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->name(), first->name());
  EXPECT_EQ(store().ListIncumbents({.history = true}, 10, "")->items.size(), 1);
}

TEST_P(FencedWriteContract, APromotionThatWasOvertakenIsNoStaleOne) {
  MustCreate("operations/a");
  const Fence fence = {"operations/a", Lease("operations/a", "one")};
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(Append(SampleTrial()));
  const absl::Status overtaken = store().Promote(incumbent, "incumbents/7", NewWrite(fence)).status();
  EXPECT_EQ(overtaken.code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(IsStale(overtaken));
}

TEST_P(FencedWriteContract, WritesForAJobThatIsUnknownAreRefused) {
  EXPECT_EQ(store().AppendTrial(SampleTrial(), NewWrite({"operations/none", 1})).status().code(),
            absl::StatusCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Store, FencedWriteContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
