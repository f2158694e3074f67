#include "server/store/postgresql/upkeep/check_database.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/postgresql/store.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::postgresql {
namespace {

using testing::HasSubstr;

class CheckDatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestServer::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    static int schemas = 0;
    schema_ = absl::StrCat("check_database", schemas++);
    target_ = TestServer::Get().Target(schema_);
    Script("DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    Script(absl::StrCat("GRANT USAGE ON SCHEMA ", schema_, " TO guest"));
  }

  void Script(const std::string& sql) const {
    const auto connection = Connection::Open({.target = target_});
    ASSERT_TRUE(connection.ok()) << connection.status();
    const absl::Status done = (*connection)->ExecuteScript(sql);
    ASSERT_TRUE(done.ok()) << done;
  }
  // As the role that owns the database, or as another.
  std::string As(const std::string& role) const { return absl::StrCat(target_, " user=", role); }
  absl::StatusOr<std::unique_ptr<PostgresqlStore>> OpenAs(const std::string& role) const {
    StoreOptions options;
    options.database.connection.target = As(role);
    options.cache_directory = directory_.path();
    return PostgresqlStore::Open(options);
  }

  const TestDirectory directory_;
  std::string schema_;
  std::string target_;
};

TEST_F(CheckDatabaseTest, SaysWhatIsThereAndChangesNothing) {
  const int64_t newest = static_cast<int64_t>(Migrations().size());
  for (int look = 0; look < 2; ++look) {
    const auto empty = CheckDatabase({.target = target_});
    ASSERT_TRUE(empty.ok()) << empty.status();
    EXPECT_EQ(empty->version, 0);
    EXPECT_EQ(empty->newest, newest);
    EXPECT_THAT(empty->where, HasSubstr("database postgres"));
  }
  const auto store = OpenAs("attune");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->AppendTrial(SampleTrial(), {}).ok());
  const auto full = CheckDatabase({.target = target_});
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->version, newest);
  EXPECT_EQ(full->trials, 1);
}

TEST_F(CheckDatabaseTest, NamesTheRightsThatARoleLacks) {
  const absl::Status to_make = CheckDatabase({.target = As("guest")}).status();
  EXPECT_EQ(to_make.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(to_make.message()),
              HasSubstr(absl::StrCat("the role guest may not make tables in the schema ", schema_)));
  EXPECT_EQ(OpenAs("guest").status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(OpenAs("attune").ok());
  Script(absl::StrCat("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ", schema_, " TO guest;",
                      "REVOKE UPDATE ON trials, jobs FROM guest"));
  for (const absl::Status& lacking : {CheckDatabase({.target = As("guest")}).status(), OpenAs("guest").status()}) {
    EXPECT_EQ(lacking.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(lacking.message()),
                HasSubstr("the role guest needs SELECT, INSERT, UPDATE and DELETE on jobs, trials"));
  }
  Script("GRANT UPDATE ON trials, jobs TO guest");
  EXPECT_TRUE(CheckDatabase({.target = As("guest")}).ok());
  const auto store = OpenAs("guest");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->AppendTrial(SampleTrial(), {}).ok());
}

TEST_F(CheckDatabaseTest, RefusesWhatANewerProgramMade) {
  ASSERT_TRUE(OpenAs("attune").ok());
  Script("UPDATE attune_schema SET version = version + 1");
  const absl::Status newer = CheckDatabase({.target = target_}).status();
  EXPECT_EQ(newer.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(newer.message()), HasSubstr("start the newer one"));
}

TEST_F(CheckDatabaseTest, SaysThatNobodyAnswers) {
  const absl::Status status =
      CheckDatabase({.target = "postgresql:///attune?host=/tmp/attune_no_such_folder"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/tmp/attune_no_such_folder"));
}

}  // namespace
}  // namespace attune::store::postgresql
