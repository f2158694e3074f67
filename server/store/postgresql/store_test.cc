// What many hosts on one database may rely on, beside the contract.
#include "server/store/postgresql/store.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/deadline.h"
#include "server/base/reason.h"
#include "server/base/sha256.h"
#include "server/metrics/metrics.h"
#include "server/store/postgresql/errors.h"
#include "server/store/postgresql/results/incumbents.h"
#include "server/store/postgresql/results/trials.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::postgresql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PostgresqlStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestServer::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    static int schemas = 0;
    target_ = TestServer::Get().Target(absl::StrCat("store", schemas++));
    store_ = OpenOn("here");
    pool_ = std::make_unique<Pool>(PoolSettings{.connection = {.target = target_}});
  }

  StoreOptions OptionsOf(const std::string& host) const {
    return {.database = {.connection = {.target = target_}, .patience = absl::Minutes(3)},
            .cache_directory = absl::StrCat(directory_.path(), "/", host)};
  }
  std::unique_ptr<Store> OpenOn(const std::string& host) const {
    absl::StatusOr<std::unique_ptr<PostgresqlStore>> store = PostgresqlStore::Open(OptionsOf(host));
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  void Script(const std::string& sql) {
    const absl::Status done = pool_->Do([&](Connection& connection) { return connection.ExecuteScript(sql); });
    ASSERT_TRUE(done.ok()) << done;
  }
  int64_t Int(const std::string& sql) {
    const auto found = pool_->DoAndReturn<std::optional<int64_t>>([&](Connection& c) { return Sql(sql).FindInt(c); });
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->value_or(-1) : -1;
  }

  std::string Append(const v1::Trial& trial) {
    const absl::StatusOr<std::string> name = store_->AppendTrial(trial, {});
    EXPECT_TRUE(name.ok()) << name.status();
    return name.value_or("");
  }
  static v1::Incumbent Of(const std::string& trial) {
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(trial);
    return incumbent;
  }
  std::string MustPromote(const std::string& trial, const std::string& previous) {
    const absl::StatusOr<v1::Incumbent> promoted = store_->Promote(Of(trial), previous, {});
    EXPECT_TRUE(promoted.ok()) << promoted.status();
    return promoted.ok() ? promoted->name() : "";
  }

  std::string PutCode(const std::string& code) {
    CompiledArtifact artifact;
    artifact.compile_key = code;
    artifact.toolchain = "nvrtc 13.0";
    artifact.sha256 = Sha256(code);
    EXPECT_TRUE(store_->PutArtifact(artifact, code).ok());
    return artifact.sha256;
  }
  std::string CachedFile(const std::string& host, const std::string& sha256) const {
    return absl::StrCat(directory_.path(), "/", host, "/", sha256.substr(0, 2), "/", sha256);
  }

  const TestDirectory directory_;
  std::string target_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Pool> pool_;
};

TEST_F(PostgresqlStoreTest, WhatOneHostWritesAnotherReads) {
  const std::unique_ptr<Store> other = OpenOn("there");
  const std::string trial = Append(SampleTrial());
  const std::string incumbent = MustPromote(trial, "");
  EXPECT_EQ(other->FindTrial(KeyOf(SampleTrial()))->name(), trial);
  EXPECT_EQ(other->GetIncumbent(kProblem, kClass, v1::POLICY_HOT)->name(), incumbent);
  EXPECT_EQ(other->Promote(Of(trial), "", {}).status().code(), absl::StatusCode::kAborted);
}

// More problems than one statement is for.
TEST_F(PostgresqlStoreTest, ReadsOfManyProblems) {
  std::vector<std::string> problems = {kProblem};
  for (int i = 0; i < 1100; ++i) problems.push_back(absl::StrCat("problem ", i));
  const std::string first = MustPromote(Append(SampleTrial()), "");
  v1::Trial trial = SampleTrial();
  trial.set_problem_text(problems.back());
  const std::string last = MustPromote(Append(trial), "");
  v1::Baseline baseline;
  baseline.set_problem_text(problems.back());
  baseline.set_device_id(kDevice);
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_contender("flash");
  ASSERT_TRUE(store_->RecordBaseline(baseline).ok());
  const absl::StatusOr<std::vector<v1::Incumbent>> served = store_->IncumbentsOf(problems);
  ASSERT_TRUE(served.ok()) << served.status();
  ASSERT_EQ(served->size(), 2U);
  EXPECT_EQ(served->front().name(), first);
  EXPECT_EQ(served->back().name(), last);
  EXPECT_EQ(store_->BaselinesOf(problems)->size(), 1U);
}

TEST_F(PostgresqlStoreTest, ChangesOfWhatIsServedAreToldOfWhoeverMadeThem) {
  const std::unique_ptr<Store> other = OpenOn("there");
  const auto changes = [&other] {
    std::vector<std::string> problems;
    const absl::StatusOr<std::vector<ServedChange>> changed = other->ChangesOfServed(absl::Minutes(2));
    EXPECT_TRUE(changed.ok()) << changed.status();
    for (const ServedChange& change : *changed) problems.push_back(change.problem_text);
    return problems;
  };
  EXPECT_THAT(changes(), IsEmpty());
  const std::string first = MustPromote(Append(SampleTrial()), "");
  EXPECT_THAT(changes(), ElementsAre(kProblem));
  for (const auto& change :
       {+[](Store& store) { return store.Unpin(kProblem, kClass, v1::POLICY_HOT).status(); },
        +[](Store& store) { return store.RollBack(kProblem, kClass, v1::POLICY_HOT, "", "").status(); }}) {
    MustPromote(Append(SampleTrial(128)), store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT)->name());
    Script("UPDATE incumbents SET changed = now() - interval '1 hour'");
    EXPECT_THAT(changes(), IsEmpty());
    ASSERT_TRUE(change(*store_).ok());
    EXPECT_THAT(changes(), ElementsAre(kProblem));
  }
}

// Until requests can name a device of another host.
TEST_F(PostgresqlStoreTest, AHostWorksOnItsOwnJobsAndSeesAll) {
  StoreOptions options = OptionsOf("a");
  options.home = "a";
  const auto a = PostgresqlStore::Open(options).value();
  options = OptionsOf("b");
  options.home = "b";
  const auto b = PostgresqlStore::Open(options).value();
  Job job;
  job.name = "operations/of_a";
  job.identity = "tune on cuda:0";
  job.operation.set_name(job.name);
  const JoinTerms one_at_most = {.others = {}, .most_unfinished = 1};
  ASSERT_TRUE(a->queue().Create(job, one_at_most).ok());
  job.name = "operations/of_b";
  job.operation.set_name(job.name);
  EXPECT_EQ(b->queue().Create(job, one_at_most)->name, "operations/of_b") << "another card";
  job.name = "operations/again";
  EXPECT_EQ(b->queue().Create(job, one_at_most)->name, "operations/of_b");
  EXPECT_THAT(*a->queue().Leasable("a"), ElementsAre("operations/of_a"));
  EXPECT_THAT(*b->queue().Leasable("b"), ElementsAre("operations/of_b"));
  EXPECT_EQ(a->queue().List({}, 10, "")->items.size(), 2);
  EXPECT_TRUE(a->queue().Cancel("operations/of_b")->cancelled);
}

TEST_F(PostgresqlStoreTest, AHostThatLostItsLeaseToAnotherWritesNothingMore) {
  const std::unique_ptr<Store> other = OpenOn("there");
  Job job;
  job.name = "operations/a";
  job.operation.set_name(job.name);
  ASSERT_TRUE(store_->queue().Create(job, {}).ok());
  const Fence fence = {job.name, (*store_->queue().Lease(job.name, "here", absl::ZeroDuration()))->epoch};
  ASSERT_TRUE(store_->AppendTrial(SampleTrial(), NewWrite(fence)).ok()) << "nobody has taken it yet";
  ASSERT_TRUE((*other->queue().Lease(job.name, "there", absl::Minutes(1))).has_value());
  const std::string trial = Append(SampleTrial(128));
  v1::Retiming retiming;
  retiming.set_problem_text(kProblem);
  retiming.set_device_id(kDevice);
  retiming.set_policy(v1::POLICY_HOT);
  retiming.set_variant("tiles:BLOCK=1");
  retiming.mutable_timing()->set_median_us(1);
  for (const absl::Status& refused : {store_->AppendTrial(SampleTrial(), NewWrite(fence)).status(),
                                      store_->Promote(Of(trial), "", NewWrite(fence)).status(),
                                      store_->AppendRetiming(retiming, NewWrite(fence)).status(),
                                      store_->RecordProfile(trial, v1::Profile(), NewWrite(fence))}) {
    EXPECT_TRUE(IsStale(refused)) << refused;
  }
  EXPECT_EQ(Int("SELECT count(*) FROM trials"), 2);
}

// A write and a lease at once: whoever is first, no write of the old epoch comes after the lease.
TEST_F(PostgresqlStoreTest, NoWriteSlipsInBehindAnotherHostsLease) {
  const std::unique_ptr<Store> other = OpenOn("there");
  for (int round = 0; round < 20; ++round) {
    Job job;
    job.name = absl::StrCat("operations/", round);
    job.operation.set_name(job.name);
    ASSERT_TRUE(store_->queue().Create(job, {}).ok());
    const Fence fence = {job.name, (*store_->queue().Lease(job.name, "here", absl::ZeroDuration()))->epoch};
    std::atomic<int64_t> there_when_leased = -1;
    {
      const std::jthread writer([&] {
        while (store_->AppendTrial(SampleTrial(round), NewWrite(fence)).ok()) {
        }
      });
      const std::jthread taker([&] {
        EXPECT_TRUE((*other->queue().Lease(job.name, "there", absl::Minutes(1))).has_value());
        there_when_leased = Int("SELECT count(*) FROM trials");
      });
    }
    EXPECT_EQ(Int("SELECT count(*) FROM trials"), there_when_leased);
  }
}

TEST_F(PostgresqlStoreTest, CodeIsReadFromTheDatabaseWhereNoFileIsAndFromTheFileAfterwards) {
  const std::string sha256 = PutCode("code");
  const std::unique_ptr<Store> other = OpenOn("there");
  EXPECT_FALSE(std::filesystem::exists(CachedFile("there", sha256)));
  EXPECT_EQ(other->ReadArtifact(sha256).value(), "code");
  EXPECT_TRUE(std::filesystem::exists(CachedFile("there", sha256)));
  Script("UPDATE artifact_code SET bytes = 'other'");
  EXPECT_EQ(other->ReadArtifact(sha256).value(), "code");
  std::filesystem::remove(CachedFile("there", sha256));
  EXPECT_EQ(other->ReadArtifact(sha256).status().code(), absl::StatusCode::kDataLoss);
  PutCode("code");
  EXPECT_EQ(other->ReadArtifact(sha256).value(), "code") << "it was put again";
}

TEST_F(PostgresqlStoreTest, AFileThatIsDamagedIsMadeAnew) {
  const std::string sha256 = PutCode("code");
  std::ofstream(CachedFile("here", sha256)) << "edoc";
  EXPECT_EQ(store_->ReadArtifact(sha256).value(), "code");
  std::string now;
  std::ifstream(CachedFile("here", sha256)) >> now;
  EXPECT_EQ(now, "code");
}

TEST_F(PostgresqlStoreTest, FilesGoWithWhatTheDatabaseForgets) {
  const std::string sha256 = PutCode("code");
  const std::unique_ptr<Store> other = OpenOn("there");
  ASSERT_TRUE(other->ReadArtifact(sha256).ok());
  Retention limits;
  limits.now = absl::Now() + absl::Hours(48);
  limits.artifact_age = absl::Hours(24);
  ASSERT_EQ(store_->Retain(limits, [] { return false; })->removed_artifacts, 1);
  EXPECT_FALSE(std::filesystem::exists(CachedFile("here", sha256)));
  ASSERT_TRUE(other->Retain(limits, [] { return false; }).ok());
  EXPECT_EQ(other->ReadArtifact(sha256).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PostgresqlStoreTest, WhatIsTodaysOnAnotherHostStays) {
  const std::unique_ptr<Store> other = OpenOn("there");
  v1::Trial crashed = SampleTrial();
  crashed.set_verdict(v1::VERDICT_CRASHED);
  crashed.mutable_finish_time()->set_seconds(1'000'000'000);
  Append(crashed);
  Retention limits;
  limits.now = absl::Now();
  limits.current = {crashed.dependencies()};
  ASSERT_TRUE(other->Retain(limits, [] { return false; }).ok());
  limits.current.front().set_driver("581");
  limits.trial_age = absl::Hours(1);
  EXPECT_EQ(store_->Retain(limits, [] { return false; })->removed_trials, 0);
  Script("UPDATE dependencies SET seen = now() - interval '2 days'");
  EXPECT_EQ(store_->Retain(limits, [] { return false; })->removed_trials, 1);
}

// As when the connection is lost after the commit: the same call makes another try.
TEST_F(PostgresqlStoreTest, ATryWhoseAnswerWasLostIsNotMadeTwice) {
  MadeRow trial = {"trials"};
  MadeRow promoted = {"incumbents"};
  std::string first;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto name =
        pool_->TransactAndReturn<std::string>([&](Connection& c) { return AppendTrial(c, SampleTrial(), {}, trial); });
    ASSERT_TRUE(name.ok()) << name.status();
    const auto incumbent =
        pool_->TransactAndReturn<v1::Incumbent>([&](Connection& c) { return Promote(c, Of(*name), "", {}, promoted); });
    ASSERT_TRUE(incumbent.ok()) << incumbent.status();
    first = incumbent->name();
  }
  EXPECT_EQ(Int("SELECT count(*) FROM trials"), 1);
  EXPECT_EQ(Int("SELECT count(*) FROM incumbents"), 1);
  const std::string second = MustPromote(Append(SampleTrial(128)), first);
  MustPromote(Append(SampleTrial(32)), second);
  MadeRollBack back;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto served = pool_->TransactAndReturn<v1::Incumbent>(
        [&](Connection& c) { return RollBack(c, kProblem, kClass, v1::POLICY_HOT, "slow", "", back); });
    ASSERT_TRUE(served.ok()) << served.status();
    EXPECT_EQ(served->name(), second);
  }
}

TEST_F(PostgresqlStoreTest, DamagedRowsAreToldOfAndHoldNobodyUp) {
  const std::string damaged = Append(SampleTrial(64));
  const std::string whole = Append(SampleTrial(128));
  const std::string incumbent = MustPromote(damaged, "");
  Script("UPDATE trial_bodies SET message = '\\xff' WHERE trial_id = (SELECT min(id) FROM trials)");
  const absl::StatusOr<Page<v1::Trial>> page = store_->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 2U);
  EXPECT_EQ(page->items[1].verdict(), v1::VERDICT_LOST);
  EXPECT_THAT(page->items[1].detail(), HasSubstr("damaged"));
  EXPECT_EQ(store_->GetTrial(damaged).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store_->ListIncumbents({}, 10, "")->items, IsEmpty());
  EXPECT_NE(MustPromote(whole, ""), incumbent) << "another takes its place";
}

TEST_F(PostgresqlStoreTest, WhatWasAnsweredOutlivesTheServersDeath) {
  std::map<std::string, std::string> made;  // names by variant
  std::atomic<size_t> count = 0;
  std::atomic<bool> stop = false;
  std::atomic<bool> stopped = false;
  {
    std::vector<std::jthread> worker;
    worker.emplace_back([&] {
      const absl::Cleanup say = [&] { stopped = true; };
      for (int i = 0; !stop; ++i) {
        const v1::Trial trial = SampleTrial(i);
        const absl::StatusOr<std::string> name = store_->AppendTrial(trial, {});
        ASSERT_TRUE(name.ok()) << name.status();
        made[trial.variant().text()] = *name;
        ++count;
      }
    });
    for (int kill = 0; kill < 3; ++kill) {
      const size_t before = count;
      while (!stopped && count < before + 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      TestServer::Get().Kill();
      TestServer::Get().Start();
    }
    stop = true;
  }
  ASSERT_GE(made.size(), 40U);
  EXPECT_EQ(Int("SELECT count(*) FROM trials"), static_cast<int64_t>(made.size())) << "each once";
  for (const auto& [variant, name] : made) EXPECT_EQ(store_->GetTrial(name)->variant().text(), variant);
}

TEST_F(PostgresqlStoreTest, UntilItIsPreparedThereIsNothingButCachedCode) {
  const std::string code = PutCode("binary");
  StoreOptions options = OptionsOf("here");
  metrics::Metrics metrics("0.1.0", {});
  options.metrics = &metrics.store();
  const auto opened = PostgresqlStore::OpenUnprepared(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  PostgresqlStore& store = **opened;
  EXPECT_FALSE(metrics.store().writer().Get()->writable);
  const absl::Status away = store.GetTrial("trials/1").status();
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(away.GetPayload(kRetryDelayUrl).has_value());
  EXPECT_EQ(store.hosts().List().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store.queue().Get("operations/1").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(*store.ReadArtifact(code), "binary");

  // What a newer version has made is not touched, then either.
  Script("UPDATE attune_schema SET version = version + 1");
  EXPECT_EQ(store.Prepare(absl::ZeroDuration()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.GetTrial("trials/1").status().message()), HasSubstr("start the newer one"));
  Script("UPDATE attune_schema SET version = version - 1");
  EXPECT_TRUE(store.Prepare(absl::ZeroDuration()).ok());
  EXPECT_EQ(store.GetTrial("trials/1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(metrics.store().writer().Get()->writable);
}

TEST_F(PostgresqlStoreTest, WhereNobodyAnswersItCannotBePreparedYet) {
  StoreOptions options = OptionsOf("here");
  options.database.connection.target = "host=/tmp/attune_no_such_folder";
  const auto opened = PostgresqlStore::OpenUnprepared(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::Status away = (*opened)->Prepare(absl::ZeroDuration());
  EXPECT_TRUE(IsUnreachable(away)) << away;
  EXPECT_THAT(std::string((*opened)->GetTrial("trials/1").status().message()), HasSubstr("attune_no_such_folder"));
}

// 10^5 trials of 1,000 problems, whose statistics the planner has.
TEST_F(PostgresqlStoreTest, LookUpsAndListingsReadNoTableWhole) {
  MustPromote(Append(SampleTrial()), "");
  Script(R"(INSERT INTO problems (text) SELECT 'problem ' || i FROM generate_series(1, 1000) AS i;
            INSERT INTO variants (text, message) SELECT 'variant ' || i, '' FROM generate_series(1, 1000) AS i;
            INSERT INTO trials (variant_id, rank_us, problem_id, device_id, uuid_id, family_id, dependencies_id, bytes,
                                policy, verdict, job)
            SELECT 2 + i % 1000, i, 2 + i / 100, first.device_id, first.uuid_id, first.family_id,
                   first.dependencies_id, 0, first.policy, first.verdict, ''
            FROM generate_series(0, 99999) AS i, trials AS first;
            INSERT INTO trial_bodies SELECT id, '' FROM trials WHERE id NOT IN (SELECT trial_id FROM trial_bodies);
            ANALYZE)");
  const auto scans = [this] {
    store_.reset();  // a session's numbers are told at its end at the latest
    const Deadline deadline = After(absl::Seconds(30));
    while (Int("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") > 1 &&
           std::chrono::steady_clock::now() < deadline) {
    }
    const int64_t scanned =
        Int("SELECT sum(seq_scan)::bigint FROM pg_stat_user_tables WHERE schemaname = current_schema()"
            " AND relname IN ('trials', 'trial_bodies')");
    store_ = OpenOn("here");
    return scanned;
  };
  const int64_t before = scans();
  const v1::Trial sample = SampleTrial();
  EXPECT_TRUE(store_->FindTrial(KeyOf(sample)).ok());
  EXPECT_TRUE(store_->GetTrial("trials/1").ok());
  EXPECT_TRUE(store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT).ok());
  EXPECT_EQ(store_->KnownTrials("problem 7", InstanceOf(sample), v1::POLICY_HOT, sample.dependencies())->size(), 100U);
  v1::TrialFilter of_problem;
  of_problem.set_problem("problem 7");
  for (const v1::TrialFilter& filter : {v1::TrialFilter(), of_problem}) {
    for (const auto order : {v1::ListTrialsRequest::ORDER_NEWEST, v1::ListTrialsRequest::ORDER_FASTEST}) {
      const absl::StatusOr<Page<v1::Trial>> page = store_->ListTrials(filter, order, 50, "");
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_EQ(page->items.size(), 50U);
      EXPECT_TRUE(store_->ListTrials(filter, order, 50, page->next_page_token).ok());
    }
  }
  Append(SampleTrial(32));
  EXPECT_EQ(scans(), before);
}

TEST_F(PostgresqlStoreTest, BackupsArePostgresqlsOwn) {
  const absl::Status status = store_->Backup(directory_.path() + "/backup").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pg_dump"));
}

}  // namespace
}  // namespace attune::store::postgresql
