#include "server/trials/recorder.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/store/testing/fake_store.h"

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
  std::vector<std::pair<size_t, std::string>> recorded;
  Recorder recorder(&store, [&](size_t candidate, const v1::Trial& trial) {
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
  Recorder recorder(&store, [](size_t, const v1::Trial&) {});
  recorder.Add(7, SomeTrial(), std::nullopt);
  recorder.Add(8, SomeTrial(), 7);
  EXPECT_TRUE(recorder.Flush().ok());
  EXPECT_EQ(store.trials()[1].identical_to(), "trials/1");
}

TEST(Recorder, TheFirstErrorEndsTheRecording) {
  store::FakeStore store;
  store.FailAppends(absl::ResourceExhaustedError("disk full"));
  int recorded = 0;
  Recorder recorder(&store, [&](size_t, const v1::Trial&) { ++recorded; });
  recorder.Add(1, SomeTrial(), std::nullopt);
  EXPECT_TRUE(absl::IsResourceExhausted(recorder.Flush()));
  store.FailAppends(absl::OkStatus());
  recorder.Add(2, SomeTrial(), std::nullopt);
  EXPECT_TRUE(absl::IsResourceExhausted(recorder.Flush()));
  EXPECT_EQ(recorded, 0);
  EXPECT_TRUE(store.trials().empty());
}

}  // namespace
}  // namespace attune::trials
