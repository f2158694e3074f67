// kill -9 at random moments of tuning and of sweeping by two holders of one queue. ATTUNE_KILLS is how often (default
// 8; the full proof is 100).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/store/testing/killed_program.h"
#include "server/store/testing/test_directory.h"
#include "server/store/testing/unfinished.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::sweep {
namespace {

// What two_tuners has told its clients, over all kills.
class Told {
 public:
  void Hear(const std::string& line) {
    if (absl::StrContains(line, "a write of a stale lease was refused")) ++refused_;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] == "created") jobs_.insert(words.at(1));
    if (words[0] == "trial") trials_[words.at(1)] = words.at(2);
    if (words[0] != "ended") return;
    const auto [it, first] = ended_.emplace(words.at(1), words.at(2));
    EXPECT_TRUE(first || it->second == words.at(2)) << words[1] << " has ended twice";
  }

  void Check(store::Store& store) const {
    for (const std::string& name : jobs_) ASSERT_TRUE(store.queue().Get(name).ok()) << name;
    for (const auto& [name, job] : trials_) ASSERT_EQ(store.GetTrial(name)->job(), job) << name;
    for (const auto& [name, state] : ended_) {
      ASSERT_EQ(v1::Operation::State_Name(store.queue().Get(name)->operation.state()), state) << name;
    }
  }

  const std::set<std::string>& jobs() const { return jobs_; }
  size_t ended() const { return ended_.size(); }
  size_t trials() const { return trials_.size(); }
  int refused() const { return refused_; }

 private:
  std::set<std::string> jobs_;
  std::map<std::string, std::string> trials_;  // to the job
  std::map<std::string, std::string> ended_;   // to the state
  int refused_ = 0;
};

// How often each job has tried each variant of each problem.
std::map<std::string, int> Tries(store::Store& store) {
  std::map<std::string, int> tries;
  std::string token;
  do {
    const auto page = store.ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 1000, token);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const v1::Trial& trial : page->items) {
      ++tries[absl::StrCat(trial.job(), " ", trial.problem_text(), " ", trial.variant().text())];
    }
    token = page->next_page_token;
  } while (!token.empty());
  return tries;
}

// Ends what is unfinished.
void WorkOff(store::Store& store) {
  supervisor::FakeCompilePool pool;
  supervisor::FakeDeviceWorker device{catalog::FakeDevice()};
  device.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
  const catalog::Host host = catalog::FakeHost();
  const std::unique_ptr<catalog::Results> results = catalog::Results::Load(store, host).value();
  const std::unique_ptr<Tuning> tuning = Tuning::Create({.host = host,
                                                         .store = store,
                                                         .results = *results,
                                                         .compiler = pool,
                                                         .devices = {{"cuda:0", &device}},
                                                         .holder = "one",
                                                         .lease = absl::Milliseconds(300)})
                                             .value();
  ASSERT_TRUE(tuning->tuner().Resume().ok());
  EXPECT_TRUE(store::AwaitAllEnded(store.queue()));
}

// Each sweep has a row for each of its two problems, from parts that have ended well.
void CheckSweeps(store::Store& store) {
  int sweeps = 0;
  const store::Page<v1::Operation> jobs = store.queue().List({}, 1000, "").value();
  for (const v1::Operation& job : jobs.items) {
    if (!job.has_sweep()) continue;
    ++sweeps;
    EXPECT_EQ(job.sweep().rows_size(), 2) << job.name();
    for (const v1::SweepReport::Row& row : job.sweep().rows()) {
      EXPECT_NE(row.outcome(), v1::SweepReport::OUTCOME_FAILED) << job.name() << ": " << row.detail();
    }
    const store::Page<v1::Operation> parts = store.queue().List({.parent = job.name()}, 10, "").value();
    EXPECT_EQ(parts.items.size(), 2U) << job.name();
    for (const v1::Operation& part : parts.items) {
      EXPECT_EQ(part.state(), v1::Operation::STATE_SUCCEEDED) << part.name();
    }
  }
  std::cout << sweeps << " sweeps of " << jobs.items.size() << " jobs (the last 1000)\n";
}

TEST(TwoHolders, EachJobEndsOnceAndNothingToldIsLostWhenTheyAreKilled) {
  const char* const wanted = std::getenv("ATTUNE_KILLS");
  int kills = 8;
  ASSERT_TRUE(wanted == nullptr || absl::SimpleAtoi(wanted, &kills));
  const store::TestDirectory directory;
  std::mt19937 random(20261122);
  Told told;
  for (int round = 0; round < kills || told.refused() == 0; ++round) {
    ASSERT_LT(round, kills + 50) << "no stale holder has tried anything";
    store::KilledProgram tuners(TWO_TUNERS, directory.path());
    const size_t enough = 1 + random() % 300;
    while (tuners.Lines().size() < enough) ASSERT_TRUE(tuners.ReadSome());
    tuners.Kill();
    for (const std::string& line : tuners.Lines()) told.Hear(line);
    ASSERT_EQ(store::IntegrityCheck(directory.path() + "/attune.db"), "ok") << "after kill " << round;
    const auto store = store::OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    told.Check(**store);
  }
  // By a clock that every lease has run out by.
  const auto store =
      store::OpenSqliteStore({.directory = directory.path(), .now = [] { return absl::Now() + absl::Hours(24); }});
  ASSERT_TRUE(store.ok()) << store.status();
  WorkOff(**store);
  told.Check(**store);
  for (const std::string& name : told.jobs()) {
    EXPECT_EQ((*store)->queue().Get(name)->operation.state(), v1::Operation::STATE_SUCCEEDED) << name;
  }
  CheckSweeps(**store);
  EXPECT_THAT(Tries(**store), ::testing::Each(::testing::Pair(::testing::_, 1)));
  std::cout << told.jobs().size() << " jobs, " << told.ended() << " ended while watched, " << told.trials()
            << " trials reported, " << told.refused() << " stale writes refused (of those logged)\n";
}

}  // namespace
}  // namespace attune::sweep
