// What was reported committed is there after kill -9, whenever it comes.
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "server/store/store.h"
#include "server/store/testing/killed_program.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

TEST(Durability, LosesNothingThatWasReportedWhenKilled) {
  constexpr int kKills = 40;
  const TestDirectory directory;
  std::mt19937 random(20261120);  // the moments differ from run to run all the same
  std::vector<std::string> reported;
  for (int round = 0; round < kKills; ++round) {
    KilledProgram appender(STORE_APPENDER, directory.path());
    // At least one, so that each round starts from a store and not from a half-made process.
    const size_t enough = 1 + random() % 80;
    while (appender.Lines().size() < enough) ASSERT_TRUE(appender.ReadSome());
    appender.Kill();
    for (std::string& name : appender.Lines()) reported.push_back(std::move(name));

    ASSERT_EQ(IntegrityCheck(directory.path() + "/attune.db"), "ok") << "after kill " << round;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    for (const std::string& name : reported) {
      absl::StatusOr<v1::Trial> trial = (*store)->GetTrial(name);
      ASSERT_TRUE(trial.ok()) << trial.status();
      ASSERT_GE(trial->detail().size(), 20'000U) << name;
      ASSERT_EQ(trial->detail().find_first_not_of(trial->detail()[0]), std::string::npos) << name;
    }
  }
}

// What store_workers has said of one queue, over all its kills.
class Told {
 public:
  void Hear(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] == "created") jobs_.insert(words.at(1));
    if (words[0] == "trial") trials_[words.at(1)] = words.at(2);
    if (words[0] == "promoted") incumbents_.insert(words.at(1));
    if (words[0] == "refused") ++refused_;
    if (words[0] != "ended") return;
    EXPECT_TRUE(ended_.emplace(words.at(1), words.at(2)).second) << words[1] << " has ended twice";
  }

  // All of it is there, and nothing that a stale holder wrote.
  void Check(Store& store) const {
    for (const std::string& name : jobs_) ASSERT_TRUE(store.queue().Get(name).ok()) << name;
    for (const auto& [name, epoch] : ended_) {
      const Job job = *store.queue().Get(name);
      EXPECT_TRUE(job.operation.done()) << name;
      EXPECT_EQ(job.operation.title(), epoch) << name;
      EXPECT_EQ(absl::StrCat(job.epoch), epoch) << name << " was leased after its end";
    }
    for (const auto& [name, job] : trials_) ASSERT_EQ(store.GetTrial(name)->job(), job) << name;
    std::set<std::string> incumbents;
    for (std::string token, first = "x"; first == "x" || !token.empty(); first = "") {
      const auto page = store.ListIncumbents({.history = true}, 1000, token);
      ASSERT_TRUE(page.ok()) << page.status();
      for (const v1::Incumbent& incumbent : page->items) incumbents.insert(incumbent.name());
      token = page->next_page_token;
    }
    for (const std::string& name : incumbents_) EXPECT_TRUE(incumbents.contains(name)) << name;
    CheckEpochs(store);
  }

  int64_t refused() const { return refused_; }
  size_t ended() const { return ended_.size(); }

 private:
  // Of each job: no trial of an earlier lease came after one of a later.
  static void CheckEpochs(Store& store) {
    std::map<std::string, int64_t> newer;
    std::string token;
    do {
      const auto page = store.ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 1000, token);
      ASSERT_TRUE(page.ok()) << page.status();
      for (const v1::Trial& trial : page->items) {
        int64_t epoch = 0;
        ASSERT_TRUE(absl::SimpleAtoi(trial.detail(), &epoch));
        const auto [it, last] = newer.emplace(trial.job(), epoch);
        EXPECT_TRUE(last || epoch <= it->second) << trial.name() << " is of a stale lease of " << trial.job();
        it->second = epoch;
      }
      token = page->next_page_token;
    } while (!token.empty());
  }

  std::set<std::string> jobs_;
  std::map<std::string, std::string> trials_;  // to the job
  std::set<std::string> incumbents_;
  std::map<std::string, std::string> ended_;  // to the epoch
  int64_t refused_ = 0;
};

TEST(Durability, EachJobOfTwoHoldersEndsOnceByItsLastEpochWhenTheyAreKilled) {
  constexpr int kKills = 30;
  const TestDirectory directory;
  std::mt19937 random(20261122);
  Told told;
  for (int round = 0; round < kKills; ++round) {
    KilledProgram workers(STORE_WORKERS, directory.path());
    const size_t enough = 1 + random() % 200;
    while (workers.Lines().size() < enough) ASSERT_TRUE(workers.ReadSome());
    workers.Kill();
    for (const std::string& line : workers.Lines()) told.Hear(line);
    ASSERT_EQ(IntegrityCheck(directory.path() + "/attune.db"), "ok") << "after kill " << round;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    told.Check(**store);
  }
  EXPECT_GT(told.ended(), 0);
  EXPECT_GT(told.refused(), 0) << "no stale holder has tried anything";
}

// Killed while the store is being made: the next start makes it whole.
TEST(Durability, OpensAfterAKillDuringTheFirstStart) {
  for (int round = 0; round < 10; ++round) {
    const TestDirectory directory;
    { KilledProgram(STORE_APPENDER, directory.path()).Kill(); }
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
  }
}

}  // namespace
}  // namespace attune::store
