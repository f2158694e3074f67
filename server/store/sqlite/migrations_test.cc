#include "server/store/sqlite/migrations.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/base/sha256.h"
#include "server/store/files.h"
#include "server/store/sqlite/database.h"
#include "server/store/store.h"
#include "server/store/testing/test_directory.h"
#include "server/store/testing/unfinished.h"

namespace attune::store::sqlite {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class MigrationsTest : public testing::Test {
 protected:
  std::unique_ptr<Connection> OpenRaw() {
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(file_, Connection::Access::kWrite);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return *std::move(connection);
  }

  static int64_t Version(Connection& connection) {
    return Statement(connection, "PRAGMA user_version").FindInt().value().value();
  }

  static bool HasTable(Connection& connection, absl::string_view name) {
    return Statement(connection, "SELECT 1 FROM sqlite_schema WHERE name = ?").Bind(name).FindInt()->has_value();
  }

  const TestDirectory directory_;
  const std::string file_ = directory_.path() + "/attune.db";
};

// A step that has landed stays as it is: databases out there have been through it. Add a step and its hash here.
TEST(Migrations, AreNeverEditedOnceLanded) {
  const std::vector<std::string> landed = {
      "78470c695d15a7a3b86e3fe442e78b1c81a27f7d448734fabd858baac3685142",
      "228338a5bb482f40e480d39c64af3cd39ee9a587b5119efcc60b1fc17a7597ca",
      "f78f83a8bd0e455238b3a881e98f4bd341feaf486672d3ce497120c6cf50736a",
      "a8eaf9a49075cbd523102f5af54879025ddac8fc26c9d3df597574fae19e32e6",
      "52299320931014d3e321ae802aaa970c871c3640e2b457785fe5b62afbbaa4ed",
      "b9be5825aa1dac7de9676969da11349159c9ecbdfd598dc98f89b69a06962b11",
      "23138452e39cf474d3c03800961ebdf8dd8050069a4e87e622a7aab9e27930f9",
      "3a560051916dece24d0772c55969e44c9c4737235ba9f0b870d4a7af787fd9d5",
      "2f63dd1013bacd968336010f482ca32c9c743c69d55999d6efe4710cd36a5338",
      "91536d0ae752a82524a51300f7a8d2245111571e49cf63d8f338b4ee495452eb",
      "5ff209c8fb9c3f89e99282dcc92509dea0439a25ebfe505af203e7597a591e99",
  };
  std::vector<std::string> now;
  for (const std::string& step : Migrations()) now.push_back(Sha256(step));
  EXPECT_THAT(now, ElementsAreArray(landed));
}

TEST_F(MigrationsTest, MarkANewFileAsOurs) {
  std::unique_ptr<Connection> connection = OpenRaw();
  ASSERT_TRUE(Migrate(*connection, Migrations()).ok());
  EXPECT_EQ(Statement(*connection, "PRAGMA application_id").FindInt().value(), kApplicationId);
  EXPECT_EQ(Version(*connection), static_cast<int64_t>(Migrations().size()));
}

TEST_F(MigrationsTest, MakeStrictTablesOnly) {
  std::unique_ptr<Connection> connection = OpenRaw();
  ASSERT_TRUE(Migrate(*connection, Migrations()).ok());
  EXPECT_EQ(Statement(*connection,
                      "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND NOT strict AND"
                      " name NOT LIKE 'sqlite_%'")
                .FindInt()
                .value(),
            0);
}

TEST_F(MigrationsTest, GoOnFromWhereTheFileIs) {
  std::unique_ptr<Connection> connection = OpenRaw();
  std::vector<std::string> steps = {"CREATE TABLE one (a) "};
  ASSERT_TRUE(Migrate(*connection, steps).ok());
  steps.push_back("CREATE TABLE two (a)");
  steps.push_back("DROP TABLE one");
  ASSERT_TRUE(Migrate(*connection, steps).ok());
  ASSERT_TRUE(Migrate(*connection, steps).ok());
  EXPECT_EQ(Version(*connection), 3);
  EXPECT_FALSE(HasTable(*connection, "one"));
  EXPECT_TRUE(HasTable(*connection, "two"));
}

TEST_F(MigrationsTest, LeaveNothingOfAStepThatFails) {
  std::unique_ptr<Connection> connection = OpenRaw();
  const std::vector<std::string> steps = {"CREATE TABLE one (a)", "CREATE TABLE two (a); CREATE TABLE one (a)"};
  const absl::Status status = Migrate(*connection, steps);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("schema version 2"));
  EXPECT_EQ(Version(*connection), 1);
  EXPECT_TRUE(HasTable(*connection, "one"));
  EXPECT_FALSE(HasTable(*connection, "two"));
}

TEST_F(MigrationsTest, RefuseAStepThatBreaksReferences) {
  std::unique_ptr<Connection> connection = OpenRaw();
  const std::vector<std::string> steps = {
      "CREATE TABLE one (id INTEGER PRIMARY KEY); CREATE TABLE two (a INTEGER REFERENCES one); INSERT INTO two VALUES "
      "(9)"};
  EXPECT_EQ(Migrate(*connection, steps).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Version(*connection), 0);
}

TEST_F(MigrationsTest, RefuseAFileOfANewerVersion) {
  ASSERT_TRUE(OpenWriter(file_).ok());
  ASSERT_TRUE(OpenRaw()->Execute("PRAGMA user_version = 1000").ok());
  const absl::Status status = OpenSqliteStore({.directory = directory_.path()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(file_));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
}

TEST_F(MigrationsTest, RefuseAnotherApplicationsFileAndLeaveItAlone) {
  ASSERT_TRUE(OpenRaw()->Execute("CREATE TABLE theirs (a)").ok());
  const absl::Status status = OpenSqliteStore({.directory = directory_.path()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  std::unique_ptr<Connection> connection = OpenRaw();
  EXPECT_FALSE(HasTable(*connection, "trials"));
  Statement mode(*connection, "PRAGMA journal_mode");
  ASSERT_TRUE(*mode.Step());
  EXPECT_EQ(mode.Text(0), "delete");
}

// testdata/v1.sql is a store as version 1 wrote it. It is never made anew.
TEST_F(MigrationsTest, OpenAFileOfVersion1) {
  absl::StatusOr<std::string> dump = ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v1.sql");
  ASSERT_TRUE(dump.ok()) << dump.status();
  ASSERT_TRUE(OpenRaw()->Execute(*dump).ok());
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory_.path()});
  ASSERT_TRUE(store.ok()) << store.status();

  absl::StatusOr<v1::Trial> trial = (*store)->GetTrial("trials/2");
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->variant().text(), "attention_simt:BLOCK_M=128");
  EXPECT_EQ(trial->timing().median_us(), 38);
  EXPECT_EQ(trial->recipe().launches(0).entry(), "attention");
  EXPECT_EQ(trial->dependencies().toolchain(), "nvrtc 13.0");
  const TrialKey key = {trial->problem_text(),
                        {trial->device_id(), "GPU-0"},
                        trial->variant().text(),
                        trial->policy(),
                        trial->dependencies()};
  EXPECT_EQ((*store)->FindTrial(key)->name(), "trials/2");
  EXPECT_EQ((*store)->ListTrials({}, v1::ListTrialsRequest::ORDER_FASTEST, 10, "")->items.size(), 3U);
  absl::StatusOr<v1::Incumbent> incumbent =
      (*store)->GetIncumbent("b2.h8.q512.d64.f16", trial->dependencies().device_fingerprint(), v1::POLICY_HOT);
  ASSERT_TRUE(incumbent.ok()) << incumbent.status();
  EXPECT_EQ(incumbent->trial().name(), "trials/1");
  EXPECT_FALSE(incumbent->has_timing());
  EXPECT_FALSE(incumbent->pinned());
  EXPECT_EQ((*store)->FindArtifact("key", "nvrtc 13.0")->verdict, v1::VERDICT_CRASHED);
  EXPECT_EQ((*store)->queue().List({.active_only = true}, 1, "")->items.at(0).name(), "operations/1");
  EXPECT_EQ((*store)->ListBaselines("", "", 1, "")->items.at(0).median_us(), 47);
}

// Jobs of version 1 have their problem in the request alone.
TEST_F(MigrationsTest, FindJobsOfVersion1ByTheirProblem) {
  absl::StatusOr<std::string> dump = ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v1.sql");
  ASSERT_TRUE(dump.ok()) << dump.status();
  v1::TuneRequest tune;
  *tune.mutable_problem() = ToProto(*ParseProblem("b2.h8.q512.d64.f16"));
  v1::EvaluateVariantRequest evaluate;
  *evaluate.mutable_problem() = tune.problem();
  v1::SweepRequest sweep;
  sweep.mutable_plan()->add_shapes()->add_problem("b2.h8.q512.d64.f16");
  {
    const std::unique_ptr<Connection> connection = OpenRaw();
    ASSERT_TRUE(connection->Execute(*dump).ok());
    int number = 1;
    for (const auto& [kind, request] : {std::pair(JobKind::kTune, tune.SerializeAsString()),
                                        std::pair(JobKind::kEvaluate, evaluate.SerializeAsString()),
                                        std::pair(JobKind::kSweep, sweep.SerializeAsString())}) {
      v1::Operation operation;
      operation.set_name(absl::StrCat("operations/", ++number));
      const std::string message = operation.SerializeAsString();
      ASSERT_TRUE(
          Statement(*connection, "INSERT INTO jobs (name, kind, request, done, operation) VALUES (?, ?, ?, 1, ?)")
              .Bind(operation.name(), static_cast<int>(kind), Blob{request}, Blob{message})
              .Run()
              .ok());
    }
  }
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory_.path()});
  ASSERT_TRUE(store.ok()) << store.status();
  const auto listed = (*store)->queue().List({.problem_text = "b2.h8.q512.d64.f16"}, 10, "");
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::vector<std::string> found;
  for (const v1::Operation& operation : listed->items) {
    found.push_back(operation.name());
    EXPECT_EQ(operation.problem(), "b2.h8.q512.d64.f16");
  }
  EXPECT_THAT(found, testing::ElementsAre("operations/3", "operations/2"));
}

// testdata/v2.sql is a store as version 2 had it.
TEST_F(MigrationsTest, OpenAFileOfVersion2) {
  absl::StatusOr<std::string> dump = ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v2.sql");
  ASSERT_TRUE(dump.ok()) << dump.status();
  ASSERT_TRUE(OpenRaw()->Execute(*dump).ok());
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory_.path()});
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::StatusOr<v1::Incumbent> incumbent = (*store)->GetIncumbent("b2.h8.q512.d64.f16", "l4", v1::POLICY_HOT);
  ASSERT_TRUE(incumbent.ok()) << incumbent.status();
  EXPECT_EQ(incumbent->timing().median_us(), 39);
  EXPECT_TRUE(incumbent->pinned());
  EXPECT_EQ((*store)->queue().List({.problem_text = "b2.h8.q512.d64.f16"}, 10, "")->items.size(), 2U);
  EXPECT_EQ(CountUnfinished((*store)->queue()), 1U);
}

// A job that an earlier version left unfinished is anybody's, keeps its request_id, and may be given an identity.
TEST_F(MigrationsTest, LeaseTheUnfinishedJobsOfEarlierVersions) {
  for (const char* dump_file :
       {"v1.sql", "v2.sql", "v3.sql", "v4.sql", "v5.sql", "v6.sql", "v7.sql", "v8.sql", "v9.sql", "v10.sql"}) {
    const TestDirectory directory;
    absl::StatusOr<std::string> dump = ReadFile(absl::StrCat(ATTUNE_SOURCE_DIR "/server/store/testdata/", dump_file));
    ASSERT_TRUE(dump.ok()) << dump.status();
    ASSERT_TRUE((*Connection::Open(directory.path() + "/attune.db", Connection::Access::kWrite))->Execute(*dump).ok());
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    Queue& queue = (*store)->queue();
    EXPECT_THAT(queue.List({}, 10, "")->items, testing::Not(testing::IsEmpty())) << dump_file;
    const absl::StatusOr<std::vector<std::string>> leasable = queue.Leasable("host");
    ASSERT_TRUE(leasable.ok()) << leasable.status();
    EXPECT_THAT(*leasable, testing::ElementsAre("operations/1")) << dump_file;
    Job job = queue.Get("operations/1").value();
    EXPECT_EQ(job.holder, "");
    EXPECT_EQ(job.identity, "");
    EXPECT_FALSE(job.cancelled);

    Job same = job;
    same.name = "operations/other";
    same.identity = "x";
    EXPECT_EQ(queue.Create(same, {})->name, job.name) << "the same request under the same request_id";
    ASSERT_TRUE(queue.Identify(job.name, "x").ok());
    same.request_id = "";
    EXPECT_EQ(queue.Create(same, {})->name, job.name) << "the same work";

    const absl::StatusOr<std::optional<Job>> leased = queue.Lease(job.name, "host", absl::Minutes(1));
    ASSERT_TRUE(leased.ok() && leased->has_value()) << leased.status();
    job.operation.set_done(true);
    EXPECT_TRUE(queue.Finish({job.name, (*leased)->epoch}, job.operation).ok());
    EXPECT_EQ(CountUnfinished(queue), 0U);
  }
}

// Name and text of all that a schema has.
std::vector<std::string> SchemaOf(const std::string& directory) {
  const std::unique_ptr<Store> store = OpenSqliteStore({.directory = directory}).value();  // which migrates
  const std::unique_ptr<Connection> connection = OpenReader(directory + "/attune.db").value();
  std::vector<std::string> schema;
  Statement select(*connection, "SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name");
  while (*select.Step()) schema.push_back(absl::StrCat(select.Text(0), ": ", select.Text(1)));
  Statement check(*connection, "PRAGMA integrity_check");
  EXPECT_TRUE(*check.Step());
  EXPECT_EQ(check.Text(0), "ok");
  return schema;
}

// Of each version that has landed there is a dump, and what a daemon works with is the same wherever it began.
TEST_F(MigrationsTest, EndAtTheSchemaOfANewFileFromEveryVersion) {
  const std::vector<std::string> fresh = SchemaOf(directory_.path());
  ASSERT_FALSE(fresh.empty());
  for (size_t version = 1; version < Migrations().size(); ++version) {
    SCOPED_TRACE(version);
    const TestDirectory directory;
    const absl::StatusOr<std::string> dump =
        ReadFile(absl::StrCat(ATTUNE_SOURCE_DIR "/server/store/testdata/v", version, ".sql"));
    ASSERT_TRUE(dump.ok()) << dump.status();
    {
      const auto connection = Connection::Open(directory.path() + "/attune.db", Connection::Access::kWrite);
      ASSERT_TRUE((*connection)->Execute(*dump).ok());
      ASSERT_EQ(Version(**connection), static_cast<int64_t>(version));
    }
    EXPECT_THAT(SchemaOf(directory.path()), ElementsAreArray(fresh));
  }
}

// testdata/v3.sql is a store as version 3 had it. Each of two cards of a class had an incumbent: the pinned one stays.
TEST_F(MigrationsTest, OpenAFileOfVersion3) {
  absl::StatusOr<std::string> dump = ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v3.sql");
  ASSERT_TRUE(dump.ok()) << dump.status();
  ASSERT_TRUE(OpenRaw()->Execute(*dump).ok());
  const std::unique_ptr<Store> store = OpenSqliteStore({.directory = directory_.path()}).value();
  const absl::StatusOr<v1::Incumbent> incumbent = store->GetIncumbent("b2.h8.q512.d64.f16", "l4", v1::POLICY_HOT);
  ASSERT_TRUE(incumbent.ok()) << incumbent.status();
  EXPECT_EQ(incumbent->name(), "incumbents/1");
  EXPECT_EQ(incumbent->device_id(), "cuda:0");
  EXPECT_TRUE(incumbent->pinned());
  EXPECT_EQ(store->ListIncumbents({}, 10, "")->items.size(), 1U);
  EXPECT_EQ(store->ListIncumbents({.device_class = "l4", .history = true}, 10, "")->items.size(), 3U);
  EXPECT_EQ(store->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 4U);
  EXPECT_EQ(CountUnfinished(store->queue()), 1U);
  Retention limits;
  limits.now = absl::FromUnixSeconds(1'800'000'300);
  limits.trial_age = limits.job_age = absl::Seconds(1);
  limits.grace = absl::ZeroDuration();
  EXPECT_EQ(store->Retain(limits, [] { return false; })->removed_jobs, 0)
      << "incumbents/3 is of the job that has ended";
  EXPECT_EQ(store->ListIncumbents({.history = true}, 10, "")->items.size(), 3U);
}

// Nobody wrote down when they ended: that they are old is not known.
TEST_F(MigrationsTest, CountTheAgeOfEarlierJobsFromTheMigration) {
  absl::StatusOr<std::string> dump = ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v2.sql");
  ASSERT_TRUE(OpenRaw()->Execute(*dump).ok());
  const std::unique_ptr<Store> store = OpenSqliteStore({.directory = directory_.path()}).value();
  Retention limits;
  limits.job_age = absl::Hours(24);
  limits.now = absl::Now() + absl::Hours(23);
  EXPECT_EQ(store->Retain(limits, [] { return false; })->removed_jobs, 0);
  limits.now += absl::Hours(2);
  EXPECT_EQ(store->Retain(limits, [] { return false; })->removed_jobs, 1);
}

// testdata/v1_three_cards.sql adds cards to that store: two of one class had an incumbent each.
TEST_F(MigrationsTest, GiveAClassTheFasterOfItsCardsIncumbents) {
  for (const char* name : {"v1.sql", "v1_three_cards.sql"}) {
    absl::StatusOr<std::string> dump = ReadFile(absl::StrCat(ATTUNE_SOURCE_DIR "/server/store/testdata/", name));
    ASSERT_TRUE(dump.ok()) << dump.status();
    ASSERT_TRUE(OpenRaw()->Execute(*dump).ok());
  }
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory_.path()});
  ASSERT_TRUE(store.ok()) << store.status();

  constexpr char kProblem[] = "b2.h8.q512.d64.f16";
  EXPECT_EQ((*store)->GetIncumbent(kProblem, "l4", v1::POLICY_HOT)->name(), "incumbents/4");
  EXPECT_EQ((*store)->GetIncumbent(kProblem, "l4", v1::POLICY_HOT)->device_id(), "cuda:1");
  EXPECT_EQ((*store)->GetIncumbent(kProblem, "h200", v1::POLICY_HOT)->name(), "incumbents/5");
  const auto history = (*store)->ListIncumbents({.device_class = "l4", .history = true}, 10, "");
  ASSERT_EQ(history->items.size(), 4U);
  EXPECT_EQ(history->items[3].name(), "incumbents/1");
  EXPECT_EQ(history->items[3].why(),
            "the first; rolled back: another card of its device class had a faster or a pinned incumbent");
  EXPECT_FALSE(history->items[0].rolled_back());
  EXPECT_EQ((*store)->RollBack(kProblem, "l4", v1::POLICY_HOT, "", "")->name(), "incumbents/3");

  // Trials are those of the card with their id; their verdicts on code are the class's.
  v1::Dependencies dependencies;
  dependencies.set_toolchain("nvrtc 13.0");
  dependencies.set_driver("580.1");
  dependencies.set_device_fingerprint("l4");
  const auto known = [&](const Instance& device) {
    std::vector<std::string> names;
    const auto trials = (*store)->KnownTrials(kProblem, device, v1::POLICY_HOT, dependencies);
    EXPECT_TRUE(trials.ok()) << trials.status();
    for (const v1::Trial& trial : *trials) names.push_back(trial.name());
    return names;
  };
  EXPECT_THAT(known({"cuda:0", "GPU-0"}), ElementsAre("trials/1", "trials/2", "trials/6"));
  EXPECT_THAT(known({"cuda:1", "GPU-1"}), ElementsAre("trials/4", "trials/5", "trials/6"));
  EXPECT_THAT(known({"cuda:2", "GPU-2"}), ElementsAre("trials/6"));
}

TEST_F(MigrationsTest, GiveAClassThePinnedOfItsCardsIncumbents) {
  std::unique_ptr<Connection> connection = OpenRaw();
  ASSERT_TRUE(Migrate(*connection, Migrations().subspan(0, 2)).ok());
  ASSERT_TRUE(connection
                  ->Execute("INSERT INTO problems VALUES (1, 'p'); INSERT INTO families VALUES (1, 'f');"
                            "INSERT INTO devices VALUES (1, 'cuda:0'), (2, 'cuda:1'), (3, 'cuda:2');"
                            "INSERT INTO variants VALUES (1, 1, 'v', x'');"
                            "INSERT INTO dependencies VALUES (1, 't', 'd', 'l4', 's');"
                            "INSERT INTO trials VALUES (1, 1, 1, 1, 1, 1, 1, 1, 30, 'j', 0, 0),"
                            " (2, 1, 2, 1, 1, 1, 1, 1, 40, 'j', 0, 0), (3, 1, 3, 1, 1, 1, 1, 1, 20, 'j', 0, 0);"
                            "INSERT INTO incumbents VALUES (1, 1, 1, 1, 1, 0, 'j', NULL, '', 1, NULL, x'', NULL, 0),"
                            " (2, 1, 2, 1, 2, 0, 'j', NULL, '', 1, NULL, x'', NULL, 1),"
                            " (3, 1, 3, 1, 3, 0, 'j', NULL, '', 1, NULL, x'', NULL, 0)")
                  .ok());
  ASSERT_TRUE(Migrate(*connection, Migrations()).ok());
  EXPECT_EQ(Statement(*connection, "SELECT id FROM incumbents WHERE served = 1").FindInt()->value_or(0), 2);
  EXPECT_EQ(Statement(*connection, "SELECT count(*) FROM incumbents WHERE served = 1").FindInt()->value_or(0), 1);
}

}  // namespace
}  // namespace attune::store::sqlite
