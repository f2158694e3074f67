#include "client/cpp/client.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "client/cpp/status.h"
#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// Stands still until told; sleeping passes no real time.
class FakeClock : public Clock {
 public:
  absl::Time Now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void SleepFor(absl::Duration duration) const override {
    const std::lock_guard lock(mutex_);
    now_ += duration;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  mutable absl::Time now_ = absl::FromUnixSeconds(1790000000);
};

const grpc::Status kUnavailable(grpc::StatusCode::UNAVAILABLE, "gone");

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() { Connect(""); }
  void Connect(const std::string& snapshot) {
    ClientOptions options;
    options.clock = &clock_;
    options.snapshot_path = snapshot;
    client_ = *Client::Connect(server_->address(), options);
  }
  void StopServer() { server_.reset(); }

  FakeClock clock_;
  testing::FakeAttune fake_;
  std::unique_ptr<testing::RunningServer> server_ = std::make_unique<testing::RunningServer>(&fake_);
  std::unique_ptr<Client> client_;
  const BestQuery tuned_ = {.problem = *ParseProblem(testing::FakeAttune::kProblem)};
  const BestQuery unknown_ = {.problem = *ParseProblem("b1.h1.q1.d64.f16")};
  const std::string snapshot_path_ =
      ::testing::TempDir() + "/client_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ClientTest, RejectsAnAddressThatIsNone) {
  for (const char* address : {"", "localhost", "localhost:", "localhost:x", "localhost:70000", ":7411", "unix:"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect(address).status())) << address;
  }
}

TEST_F(ClientTest, SpeaksOverAUnixSocketToo) {
  const std::string address = "unix:" + snapshot_path_ + ".socket";
  testing::FakeAttune fake;
  const testing::RunningServer server(&fake, address);
  EXPECT_TRUE((*Client::Connect(address))->Ping().ok());
  EXPECT_EQ(fake.calls("Ping"), 1);
}

TEST_F(ClientTest, ASecondQuestionIsAnsweredFromTheCache) {
  const auto first = client_->GetBest(tuned_);
  const auto second = client_->GetBest(tuned_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->variant().text(), testing::FakeAttune::kVariant);
  EXPECT_EQ(*first, *second) << "the very same object";
  EXPECT_EQ(fake_.calls("GetBest"), 1);
}

TEST_F(ClientTest, AsksAgainWhenTheAnswerIsTooOld) {
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  clock_.SleepFor(ClientOptions().time_to_live);
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 2);
}

TEST_F(ClientTest, AnAnswerThatIsBeingCompiledIsAskedForAgain) {
  fake_.HasCode({v1::ARTIFACT_STATE_COMPILING, v1::ARTIFACT_STATE_READY});
  BestQuery query = tuned_;
  query.wait = absl::Milliseconds(1500);
  EXPECT_EQ((*client_->GetBest(query))->artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  EXPECT_EQ(fake_.last_get_best().wait().seconds(), 1);
  EXPECT_EQ(fake_.last_get_best().wait().nanos(), 500'000'000);
  EXPECT_EQ((*client_->GetBest(tuned_))->artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_FALSE(fake_.last_get_best().has_wait());
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 2);
}

TEST_F(ClientTest, AnAnswerToANarrowQuestionIsNotGivenToEverybody) {
  BestQuery narrow = tuned_;
  narrow.acceptable = {v1::PROVENANCE_EXACT};
  ASSERT_TRUE(client_->GetBest(narrow).ok());
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 2);
  ASSERT_TRUE(client_->GetBest(narrow).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 2) << "a cached answer that is acceptable serves";
}

TEST_F(ClientTest, FetchesTheArtifactThatTheCachedAnswerLacks) {
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  BestQuery with_artifact = tuned_;
  with_artifact.include_artifact = true;
  const auto answer = client_->GetBest(with_artifact);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ((*answer)->artifact(), "CUBIN");
}

TEST_F(ClientTest, ErrorsAreNotCachedAndKeepTheirReason) {
  const auto first = client_->GetBest(unknown_);
  EXPECT_TRUE(absl::IsNotFound(first.status()));
  EXPECT_EQ(ErrorReason(first.status()), "NOT_FOUND");
  EXPECT_FALSE(client_->GetBest(unknown_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 2);
}

TEST_F(ClientTest, TriesAgainOnUnavailableAlone) {
  fake_.FailNext(2, kUnavailable);
  EXPECT_TRUE(client_->GetBest(tuned_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 3);
  fake_.FailNext(1, {grpc::StatusCode::INTERNAL, "broken"});
  EXPECT_FALSE(client_->GetTrial("trials/1").ok());
  EXPECT_EQ(fake_.calls("GetTrial"), 1);
}

TEST_F(ClientTest, NeverRollsBackTwice) {
  fake_.FailNext(1, kUnavailable);
  EXPECT_TRUE(absl::IsUnavailable(client_->RollBack({}).status()));
  EXPECT_EQ(fake_.calls("RollBack"), 1);
  fake_.FailNext(1, kUnavailable);
  EXPECT_TRUE(absl::IsUnavailable(client_->RecordBaseline({}).status()));
  EXPECT_EQ(fake_.calls("RecordBaseline"), 1);
}

TEST_F(ClientTest, ARetriedStartCarriesTheSameRequestId) {
  fake_.FailNext(1, kUnavailable);
  ASSERT_TRUE(client_->Tune({}).ok());
  EXPECT_EQ(fake_.calls("Tune"), 2);
  const std::string first = fake_.last_tune().request_id();
  EXPECT_EQ(first.size(), 32u);
  ASSERT_TRUE(client_->Tune({}).ok());
  EXPECT_NE(fake_.last_tune().request_id(), first);
  v1::TuneRequest own;
  own.set_request_id("mine");
  ASSERT_TRUE(client_->Tune(own).ok());
  EXPECT_EQ(fake_.last_tune().request_id(), "mine");
}

TEST_F(ClientTest, WatchShowsEachStateAndReturnsTheLast) {
  fake_.EndsWith(testing::SucceededTuning());
  const std::string name = client_->Tune({})->name();
  std::vector<v1::Operation::State> seen;
  const auto last = client_->Watch(name, [&](const v1::Operation& now) { seen.push_back(now.state()); });
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->tune().promoted());
  EXPECT_THAT(seen, ::testing::ElementsAre(v1::Operation::STATE_RUNNING, v1::Operation::STATE_SUCCEEDED));
}

TEST_F(ClientTest, WatchAttachesAgainWhenTheStreamBreaks) {
  fake_.EndsWith(testing::SucceededTuning());
  fake_.BreakWatches(6);
  const std::string name = client_->Tune({})->name();
  const auto last = client_->Watch(name, [](const v1::Operation&) {});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->done());
  EXPECT_EQ(fake_.calls("WatchOperation"), 7);
}

TEST_F(ClientTest, WatchDoesNotInsistOnAnOperationThatIsNotThere) {
  EXPECT_TRUE(absl::IsNotFound(client_->Watch("operations/9", [](const v1::Operation&) {}).status()));
  EXPECT_EQ(fake_.calls("WatchOperation"), 1);
}

TEST_F(ClientTest, AWatchCanBeStoppedWhileItWaits) {
  std::stop_source stop;
  fake_.HoldWatches([&] { stop.request_stop(); });
  const std::string name = client_->Tune({})->name();
  EXPECT_TRUE(absl::IsCancelled(client_
                                    ->Watch(
                                        name, [](const v1::Operation&) {}, stop.get_token())
                                    .status()));
  EXPECT_FALSE(client_->GetOperation(name)->done()) << "the operation goes on";
}

TEST_F(ClientTest, ATunedWinnerReplacesTheCachedAnswer) {
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  fake_.EndsWith(testing::SucceededTuning());
  ASSERT_TRUE(client_->Watch(client_->Tune({})->name(), [](const v1::Operation&) {}).ok());
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), 2);
}

TEST_F(ClientTest, AnExpiredAnswerIsBetterThanNone) {
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  clock_.SleepFor(absl::Hours(1));
  StopServer();
  const auto answer = client_->GetBest(tuned_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_THAT((*answer)->provenance_detail(), HasSubstr("the server's answer of 2026-09-21"));
  EXPECT_TRUE(absl::IsUnavailable(client_->GetBest(unknown_).status()));
}

TEST_F(ClientTest, AnswersFromTheSnapshotWhenTheServerIsGone) {
  const auto summary = client_->ExportSnapshot(snapshot_path_, true);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->answers, 1u);
  Connect(snapshot_path_);
  StopServer();
  const auto answer = client_->GetBest(tuned_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)->variant().text(), testing::FakeAttune::kVariant);
  EXPECT_EQ((*answer)->artifact(), "CUBIN");
  EXPECT_THAT((*answer)->provenance_detail(), HasSubstr("from the snapshot of"));
  const auto missing = client_->GetBest(unknown_).status();
  EXPECT_TRUE(absl::IsUnavailable(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("has no answer for b1.h1.q1.d64.f16"));
}

TEST_F(ClientTest, AsksForTheBestByAnObjectiveAndKeepsItApart) {
  fake_.HasAnAlternative();
  BestQuery query = tuned_;
  query.objective = v1::OBJECTIVE_ENERGY;
  EXPECT_EQ((*client_->GetBest(tuned_))->variant().text(), testing::FakeAttune::kVariant);
  EXPECT_EQ((*client_->GetBest(query))->variant().text(), testing::FakeAttune::kLeastEnergy);
  query.objective = v1::OBJECTIVE_TIME;
  const int calls = fake_.calls("GetBest");
  EXPECT_EQ((*client_->GetBest(query))->variant().text(), testing::FakeAttune::kVariant);
  EXPECT_EQ(fake_.calls("GetBest"), calls) << "time is what is asked for without an objective";
}

TEST_F(ClientTest, ASnapshotHasTheBestByEnergyToo) {
  fake_.HasAnAlternative();
  const auto summary = client_->ExportSnapshot(snapshot_path_, true);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->answers, 2u);
  const auto snapshot = Snapshot::Load(snapshot_path_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->answers().back().request.objective(), v1::OBJECTIVE_UNSPECIFIED) << "the fastest is last";
  Connect(snapshot_path_);
  StopServer();
  BestQuery query = tuned_;
  query.objective = v1::OBJECTIVE_ENERGY;
  EXPECT_EQ((*client_->GetBest(query))->variant().text(), testing::FakeAttune::kLeastEnergy);
  EXPECT_EQ((*client_->GetBest(tuned_))->variant().text(), testing::FakeAttune::kVariant);
}

TEST_F(ClientTest, AfterAFailureItDoesNotTryTheServerAtEachQuestion) {
  ASSERT_TRUE(client_->ExportSnapshot(snapshot_path_, false).ok());
  Connect(snapshot_path_);
  fake_.FailNext(RetryPolicy().attempts, kUnavailable);
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  const int calls = fake_.calls("GetBest");
  ASSERT_TRUE(client_->GetBest(tuned_).ok());
  EXPECT_EQ(fake_.calls("GetBest"), calls);
  clock_.SleepFor(ClientOptions().unreachable_hold);
  const auto back = client_->GetBest(tuned_);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back)->provenance_detail(), "") << "the server's own answer again";
}

TEST_F(ClientTest, ADamagedSnapshotIsNamedBesideTheServersError) {
  std::filesystem::remove(snapshot_path_);
  std::ofstream(snapshot_path_) << "junk";
  Connect(snapshot_path_);
  StopServer();
  const auto status = client_->GetBest(tuned_).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace attune
