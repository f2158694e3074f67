#include "server/trials/recorder.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/store/testing/fake_store.h"
#include "server/trials/testing/lone_job.h"

namespace attune::trials {
namespace {

v1::Trial SomeTrial() {
  v1::Trial trial;
  trial.set_problem_text("b1.h1.q8.d64.f16");
  trial.set_device_id("cuda:0");
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_variant()->set_family("tiles");
  trial.mutable_variant()->set_text("tiles:BLOCK=16");
  return trial;
}

TEST(Recorder, RecordsInOrderAndTellsOnceItIsStored) {
  store::FakeStore store;
  LoneJob lone;
  std::vector<std::pair<size_t, std::string>> recorded;
  Recorder recorder(&store, lone.job, [&](size_t candidate, const v1::Trial& trial) {
    EXPECT_TRUE(store.GetTrial(trial.name()).ok());
    recorded.emplace_back(candidate, trial.name());
  });
  recorder.Add(7, SomeTrial(), std::nullopt);
  recorder.Add(3, SomeTrial(), std::nullopt);
  EXPECT_TRUE(recorder.Flush().ok());
  EXPECT_EQ(recorded, (std::vector<std::pair<size_t, std::string>>{{7, "trials/1"}, {3, "trials/2"}}));
}

TEST(Recorder, ATwinIsNamedByTheStoredNameOfItsFirst) {
  store::FakeStore store;
  LoneJob lone;
  Recorder recorder(&store, lone.job, [](size_t, const v1::Trial&) {});
  recorder.Add(7, SomeTrial(), std::nullopt);
  recorder.Add(8, SomeTrial(), 7);
  EXPECT_TRUE(recorder.Flush().ok());
  EXPECT_EQ(store.trials()[1].identical_to(), "trials/1");
}

TEST(Recorder, TheFirstErrorEndsTheRecording) {
  store::FakeStore store;
  LoneJob lone;
  store.FailAppends(absl::InternalError("no such column"));
  int recorded = 0;
  Recorder recorder(&store, lone.job, [&](size_t, const v1::Trial&) { ++recorded; });
  recorder.Add(1, SomeTrial(), std::nullopt);
  EXPECT_TRUE(absl::IsInternal(recorder.Flush()));
  store.FailAppends(absl::OkStatus());
  recorder.Add(2, SomeTrial(), std::nullopt);
  EXPECT_TRUE(absl::IsInternal(recorder.Flush()));
  EXPECT_EQ(recorded, 0);
  EXPECT_TRUE(store.trials().empty());
}

TEST(Recorder, AStoreThatIsUnavailableIsWaitedFor) {
  store::FakeStore store;
  LoneJob lone;
  store.FailAppends(absl::ResourceExhaustedError("disk full"));
  Recorder recorder(&store, lone.job, [](size_t, const v1::Trial&) {});
  for (size_t i = 0; i < 3; ++i) recorder.Add(i, SomeTrial(), std::nullopt);
  lone.AwaitMessage("waiting for the store: disk full");
  EXPECT_TRUE(store.trials().empty());
  store.FailAppends(absl::OkStatus());
  EXPECT_TRUE(recorder.Flush().ok());
  EXPECT_EQ(store.trials().size(), 3);
}

TEST(Recorder, AStopEndsTheWaitForTheStore) {
  store::FakeStore store;
  LoneJob lone;
  store.FailAppends(absl::UnavailableError("the disk is gone"));
  Recorder recorder(&store, lone.job, [](size_t, const v1::Trial&) {});
  recorder.Add(1, SomeTrial(), std::nullopt);
  lone.AwaitMessage("waiting for the store: the disk is gone");
  lone.stop.request_stop();
  EXPECT_TRUE(absl::IsUnavailable(recorder.Flush()));
}

TEST(Recorder, AStaleLeaseEndsTheRecording) {
  store::FakeStore store;
  LoneJob lone;
  store::Job job;
  job.name = lone.job.name;
  ASSERT_TRUE(store.queue().Create(job, {}).ok());
  lone.job.epoch = (*store.queue().Lease(job.name, "one", absl::Minutes(1)))->epoch;
  ASSERT_TRUE(store.queue().Requeue(lone.job.fence()).ok());
  Recorder recorder(&store, lone.job, [](size_t, const v1::Trial&) {});
  recorder.Add(1, SomeTrial(), std::nullopt);
  EXPECT_TRUE(store::IsStale(recorder.Flush()));
  EXPECT_TRUE(store.trials().empty());
}

}  // namespace
}  // namespace attune::trials
