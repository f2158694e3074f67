// Rows that earlier versions, or a failing disk, have left unreadable: healed where they can be; where not, no list
// ends at them.
#include "gmock/gmock.h"
#include "server/store/sqlite/connection.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;

class DamagedRowsTest : public testing::Test {
 protected:
  DamagedRowsTest() { Open(); }

  void Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory_.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // With the store closed.
  void Change(const std::string& sql) {
    store_.reset();
    {
      auto connection = sqlite::Connection::Open(directory_.path() + "/attune.db", sqlite::Connection::Access::kWrite);
      ASSERT_TRUE(connection.ok()) << connection.status();
      ASSERT_TRUE((*connection)->Execute(sql).ok());
    }
    Open();
  }

  template <typename List>
  static std::vector<std::string> All(List list) {
    std::vector<std::string> all;
    std::string token;
    do {
      auto page = list(token);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return all;
      for (const auto& item : page->items) all.push_back(item.name());
      token = page->next_page_token;
    } while (!token.empty());
    return all;
  }
  std::vector<std::string> Trials(int page_size) {
    return All([&](const std::string& token) {
      return store_->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, page_size, token);
    });
  }
  std::vector<std::string> Jobs(int page_size) {
    return All([&](const std::string& token) { return store_->queue().List({}, page_size, token); });
  }
  void AddJob(const std::string& name, const std::string& message = "") {
    Job job;
    job.name = name;
    job.operation.set_name(name);
    job.operation.mutable_progress()->set_message(message);
    ASSERT_TRUE(store_->queue().Create(job, {}).ok());
  }

  const TestDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(DamagedRowsTest, ATextThatWasCutInsideACharacterIsCleaned) {
  v1::Trial trial = SampleTrial();
  trial.set_detail("na\xc3\xafve caf\xc3");
  const std::string name = store_->AppendTrial(trial, {}).value();
  const absl::StatusOr<v1::Trial> read = store_->GetTrial(name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->detail(), "na\xc3\xafve caf\xEF\xBF\xBD");
  EXPECT_EQ(read->timing().median_us(), trial.timing().median_us());
  EXPECT_THAT(Trials(10), ElementsAre(name));
  EXPECT_EQ(store_->KnownTrials(kProblem, {kDevice, "GPU-0"}, v1::POLICY_HOT, trial.dependencies())->size(), 1U);
}

TEST_F(DamagedRowsTest, ATextWithinAnOperationIsCleanedToo) {
  AddJob("operations/1", "best: caf\xe9");
  EXPECT_EQ(store_->queue().Get("operations/1")->operation.progress().message(), "best: caf\xEF\xBF\xBD");
  EXPECT_THAT(Jobs(10), ElementsAre("operations/1"));
}

TEST_F(DamagedRowsTest, AListOfTrialsGoesOnAndSaysWhichAreDamaged) {
  for (int i = 1; i <= 4; ++i) store_->AppendTrial(SampleTrial(i), {}).value();
  Change("UPDATE trial_bodies SET message = x'0aff' WHERE trial_id IN (2, 4)");
  for (int page_size : {1, 2, 3, 10}) {
    EXPECT_THAT(Trials(page_size), ElementsAre("trials/4", "trials/3", "trials/2", "trials/1")) << page_size;
  }
  const v1::Trial damaged = store_->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 1, "")->items[0];
  EXPECT_EQ(damaged.verdict(), v1::VERDICT_LOST);
  EXPECT_EQ(damaged.detail(), "the stored trial is damaged; it is tried again when it is asked for");
  EXPECT_EQ(damaged.variant().text(), SampleTrial(4).variant().text());
  EXPECT_EQ(store_->GetTrial("trials/2").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(DamagedRowsTest, KnownTrialsAreThoseThatCanBeRead) {
  for (int i = 1; i <= 3; ++i) store_->AppendTrial(SampleTrial(i), {}).value();
  Change("UPDATE trial_bodies SET message = x'0aff' WHERE trial_id = 2");
  const auto known = store_->KnownTrials(kProblem, {kDevice, "GPU-0"}, v1::POLICY_HOT, SampleTrial().dependencies());
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->size(), 2U);
}

TEST_F(DamagedRowsTest, AListOfJobsGoesOnAndSaysWhichAreDamaged) {
  for (const char* name : {"operations/1", "operations/2", "operations/3"}) AddJob(name);
  Change("UPDATE jobs SET operation = x'0aff' WHERE name = 'operations/2'");
  for (int page_size : {1, 2, 10}) {
    EXPECT_THAT(Jobs(page_size), ElementsAre("operations/3", "operations/2", "operations/1")) << page_size;
  }
  const v1::Operation damaged = store_->queue().List({}, 10, "")->items[1];
  EXPECT_EQ(damaged.state(), v1::Operation::STATE_FAILED);
  EXPECT_EQ(damaged.error().message(), "the stored operation is damaged");
}

TEST_F(DamagedRowsTest, AHistoryGoesOnAfterOne) {
  std::string previous;
  for (int i = 1; i <= 3; ++i) {
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(store_->AppendTrial(SampleTrial(i), {}).value());
    previous = store_->Promote(incumbent, previous, {})->name();
  }
  Change("UPDATE trial_bodies SET message = x'0aff' WHERE trial_id = 2");
  EXPECT_THAT(All([&](const std::string& token) { return store_->ListIncumbents({.history = true}, 1, token); }),
              ElementsAre("incumbents/3", "incumbents/1"));
}

TEST_F(DamagedRowsTest, AnIncumbentThatCannotBeReadGivesItsPlaceToTheNext) {
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(store_->AppendTrial(SampleTrial(1), {}).value());
  ASSERT_TRUE(store_->Promote(incumbent, "", {}).ok());
  Change("UPDATE trial_bodies SET message = x'0aff'");
  EXPECT_EQ(store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT).status().code(), absl::StatusCode::kNotFound);
  incumbent.mutable_trial()->set_name(store_->AppendTrial(SampleTrial(2), {}).value());
  ASSERT_TRUE(store_->Promote(incumbent, "", {}).ok());
  EXPECT_EQ(store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT)->trial().name(), "trials/2");
}

}  // namespace
}  // namespace attune::store
