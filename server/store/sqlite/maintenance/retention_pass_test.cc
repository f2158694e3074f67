// Retention of as many trials as a store is meant to hold, and what it does to the file.
#include "server/store/sqlite/maintenance/retention_pass.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/incumbents.h"
#include "server/store/sqlite/trials.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

constexpr int kRounds = 40;
constexpr int kTrialsARound = 2'500;
constexpr int kServedProblems = 20;
constexpr int64_t kLimit = int64_t{16} << 20;
constexpr int64_t kMadeAt = 1'000'000'000;

std::string ServedProblemText(int problem) { return absl::StrCat("b", problem + 1, ".h8.q512.d64.f16"); }

// One in seven has a bad verdict, one in two of the current dependencies.
v1::Trial MakeTrial(int id) {
  const uint32_t scrambled = static_cast<uint32_t>(id) * 2654435761U;
  v1::Trial trial = SampleTrial(id, 1 + scrambled / 16 % 50'000 * 0.25);
  trial.set_problem_text(ServedProblemText(id % kServedProblems));
  trial.set_verdict(scrambled % 7 == 0 ? v1::VERDICT_WRONG_RESULT : v1::VERDICT_OK);
  if (scrambled / 7 % 2 == 0) trial.mutable_dependencies()->set_driver("579");
  trial.mutable_finish_time()->set_seconds(kMadeAt + id);
  return trial;
}

class RetentionOfManyTrials : public testing::Test {
 protected:
  std::string file() const { return directory_.path() + "/attune.db"; }

  // In one transaction, for speed; the store is closed meanwhile. The first trial of each problem that may be promoted
  // in each round becomes its incumbent.
  void Append(int round) {
    const std::unique_ptr<sqlite::Connection> writer = sqlite::OpenWriter(file()).value();
    const std::unique_ptr<sqlite::Transaction> transaction = sqlite::Transaction::Begin(*writer).value();
    for (int id = round * kTrialsARound; id < (round + 1) * kTrialsARound; ++id) {
      const v1::Trial trial = MakeTrial(id);
      const std::string name = sqlite::AppendTrial(*writer, trial, {}).value();
      std::string& served = served_[trial.problem_text()];
      if (trial.verdict() != v1::VERDICT_OK || !served.empty()) continue;
      v1::Incumbent incumbent;
      incumbent.mutable_trial()->set_name(name);
      absl::StatusOr<v1::Incumbent> before =
          sqlite::GetIncumbent(*writer, trial.problem_text(), kClass, v1::POLICY_HOT);
      served = sqlite::Promote(*writer, incumbent, before.ok() ? before->name() : "", {}).value().name();
    }
    ASSERT_TRUE(transaction->Commit().ok());
    served_.clear();
  }

  static std::vector<std::string> Incumbents(Store& store) {
    std::vector<std::string> incumbents;
    const auto page = store.ListIncumbents({.history = true}, 1000, "");
    for (const v1::Incumbent& incumbent : page->items) incumbents.push_back(incumbent.SerializeAsString());
    return incumbents;
  }

  // What look-ups compare an incumbent with: the fastest trials of its problem.
  static std::vector<std::string> Fastest(Store& store) {
    std::vector<std::string> names;
    for (int problem = 0; problem < kServedProblems; ++problem) {
      v1::TrialFilter filter;
      filter.set_problem(ServedProblemText(problem));
      filter.set_device_id(kDevice);
      filter.set_policy(v1::POLICY_HOT);
      filter.add_verdicts(v1::VERDICT_OK);
      const auto page = store.ListTrials(filter, v1::ListTrialsRequest::ORDER_FASTEST, kServedTrials, "");
      for (const v1::Trial& trial : page->items) names.push_back(trial.name());
    }
    return names;
  }

  const TestDirectory directory_;
  std::map<std::string, std::string> served_;
};

TEST_F(RetentionOfManyTrials, KeepsTheFileUnderItsLimitAndAllThatIsServed) {
  Retention limits;
  limits.database_bytes = kLimit;
  limits.current = {SampleTrial().dependencies()};
  limits.now = absl::Now();
  int64_t removed = 0;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(Append(round));
    const std::unique_ptr<Store> store = OpenSqliteStore({.directory = directory_.path()}).value();
    const std::vector<std::string> incumbents = Incumbents(*store);
    const std::vector<std::string> fastest = Fastest(*store);
    const absl::StatusOr<Retained> retained = store->Retain(limits, [] { return false; });
    ASSERT_TRUE(retained.ok()) << retained.status();
    removed += retained->removed_trials;
    EXPECT_LE(retained->database_bytes, kLimit);
    EXPECT_LE(std::filesystem::file_size(file()), static_cast<uintmax_t>(kLimit));
    EXPECT_EQ(Incumbents(*store), incumbents);
    EXPECT_EQ(Fastest(*store), fastest);
  }
  EXPECT_GT(removed, kRounds * kTrialsARound / 2);

  // No bad verdict of today has gone: each is still found under its key.
  const std::unique_ptr<Store> store = OpenSqliteStore({.directory = directory_.path()}).value();
  int bad = 0;
  for (int id = 0; id < kRounds * kTrialsARound; id += 37) {
    const v1::Trial trial = MakeTrial(id);
    if (trial.verdict() == v1::VERDICT_OK || trial.dependencies().driver() != "580.1") continue;
    ++bad;
    EXPECT_TRUE(store->FindTrial(KeyOf(trial)).ok()) << id;
  }
  EXPECT_GT(bad, 100);
}

TEST_F(RetentionOfManyTrials, LetsOthersWriteAndReadBetweenItsSmallSteps) {
  ASSERT_NO_FATAL_FAILURE(Append(0));
  const std::unique_ptr<Store> store = OpenSqliteStore({.directory = directory_.path()}).value();
  Retention limits;
  limits.trial_age = absl::Hours(1);
  limits.now = absl::Now();
  int steps = 0;
  const absl::StatusOr<Retained> retained = store->Retain(limits, [&] {
    ++steps;
    v1::Trial trial = SampleTrial(1'000'000 + steps);
    trial.set_problem_text("b1.h1.q1.d64.f16");
    const absl::StatusOr<std::string> name = store->AppendTrial(trial, {});
    EXPECT_TRUE(name.ok()) << name.status();
    EXPECT_TRUE(store->GetTrial(*name).ok());
    return false;
  });
  ASSERT_TRUE(retained.ok()) << retained.status();
  EXPECT_GT(retained->removed_trials, 1'000);
  EXPECT_GE(steps, retained->removed_trials / 200);
}

}  // namespace
}  // namespace attune::store
