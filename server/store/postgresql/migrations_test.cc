#include "server/store/postgresql/migrations.h"

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "server/store/postgresql/queue.h"
#include "server/store/postgresql/testing/server.h"

namespace attune::store::postgresql {
namespace {

using testing::HasSubstr;

class PostgresqlMigrationsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestServer::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    static int schemas = 0;
    target_ = TestServer::Get().Target(absl::StrCat("migrations", schemas++));
  }

  int64_t Int(const std::string& sql) {
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open({.target = target_});
    EXPECT_TRUE(connection.ok()) << connection.status();
    absl::StatusOr<Rows> rows = (*connection)->Query(sql);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && *rows->Step() ? rows->Int(0) : -1;
  }
  int64_t Version() { return Int("SELECT version FROM attune_schema"); }

  PoolSettings Settings() { return {.connection = {.target = target_}}; }

  std::string target_;
};

// A step that has landed is never edited. A new one is added here with it.
TEST(PostgresqlStepsTest, AreAsTheyLanded) {
  const std::vector<std::string> landed = {"b9c94f27e865ef162db62071f1827b0c0dda235785890449243be30ed300314b",
                                           "2eac36df5eaf237bbe2e920b9edde9c98295f0b2330694a172f1f9d4b9ef9240",
                                           "6f366e45ff625d9255c5574e74f283b3be498618d51fbbf34d45825570188f93"};
  ASSERT_EQ(Migrations().size(), landed.size());
  for (size_t i = 0; i < landed.size(); ++i) EXPECT_EQ(Sha256(Migrations()[i]), landed[i]) << "step " << i + 1;
}

TEST_F(PostgresqlMigrationsTest, MakesTheTablesOnce) {
  for (int start = 0; start < 2; ++start) {
    const auto queue = PostgresqlQueue::Open(Settings());
    ASSERT_TRUE(queue.ok()) << queue.status();
    EXPECT_EQ(Version(), static_cast<int64_t>(Migrations().size()));
  }
}

TEST_F(PostgresqlMigrationsTest, OneOfManyThatStartAtOnceDoesIt) {
  std::array<absl::Status, 6> opened;
  {
    std::vector<std::jthread> starts;
    for (absl::Status& status : opened) {
      starts.emplace_back([&] { status = PostgresqlQueue::Open(Settings()).status(); });
    }
  }
  for (const absl::Status& status : opened) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Int("SELECT count(*) FROM attune_schema"), 1);
}

TEST_F(PostgresqlMigrationsTest, AppliesWhatIsNewAlone) {
  Pool pool(Settings());
  std::vector<std::string> steps(Migrations().begin(), Migrations().end());
  ASSERT_TRUE(Migrate(pool, steps).ok());
  steps.push_back("CREATE TABLE later (id bigint); INSERT INTO later VALUES (1)");
  ASSERT_TRUE(Migrate(pool, steps).ok());
  ASSERT_TRUE(Migrate(pool, steps).ok());
  EXPECT_EQ(Int("SELECT count(*) FROM later"), 1);
}

TEST_F(PostgresqlMigrationsTest, RefusesWhatANewerProgramMade) {
  Pool pool(Settings());
  std::vector<std::string> newer(Migrations().begin(), Migrations().end());
  newer.push_back("CREATE TABLE later (id bigint)");
  ASSERT_TRUE(Migrate(pool, newer).ok());
  const absl::Status refused = PostgresqlQueue::Open(Settings()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("is of schema version ", newer.size(), "; this program knows versions up to ",
                                     newer.size() - 1, ": start the newer one")));
}

TEST_F(PostgresqlMigrationsTest, AStepThatFailsLeavesNothing) {
  Pool pool(Settings());
  std::vector<std::string> steps(Migrations().begin(), Migrations().end());
  steps.push_back("CREATE TABLE later (id bigint); SELECT 1 / 0");
  const absl::Status failed = Migrate(pool, steps);
  EXPECT_THAT(std::string(failed.message()), HasSubstr(absl::StrCat("migrating to schema version ", steps.size())));
  EXPECT_EQ(Int("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), 0);
}

}  // namespace
}  // namespace attune::store::postgresql
