// No table and no column of either schema is forgotten by the copy.
#include "server/store/copy/tables.h"

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/migrations.h"
#include "server/store/testing/test_directory.h"

namespace attune::store::copy {
namespace {

using testing::IsSupersetOf;

// "trials.id" and so on: what a copy to `database` fills, and what is known to be the database's own.
std::set<std::string> Known(Database database) {
  std::set<std::string> known;
  for (const Table& table : Tables("host")) {
    for (const Column& column : ColumnsOf(table, database)) known.insert(absl::StrCat(table.name, ".", column.name));
    for (const std::string& column : table.own_columns) known.insert(absl::StrCat(table.name, ".", column));
  }
  return known;
}

// Not copied row by row: what is under way, who has the store open, and bytes, which SQLite has as files. docs/store.md
// says why of each.
bool IsOwn(const std::string& table) {
  static const auto& own = *new std::set<std::string>{"job_writes",    "hosts",         "attune_schema",
                                                      "artifact_code", "blob_contents", "blob_space"};
  return own.contains(table);
}

TEST(TablesTest, KnowEveryColumnOfSqlite) {
  const TestDirectory directory;
  const auto connection =
      sqlite::Connection::Open(directory.path() + "/attune.db", sqlite::Connection::Access::kWrite).value();
  ASSERT_TRUE(sqlite::Migrate(*connection, sqlite::Migrations()).ok());
  std::set<std::string> there;
  sqlite::Statement columns(*connection,
                            "SELECT tables.name, columns.name FROM sqlite_schema AS tables"
                            " JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'");
  while (columns.Step().value()) {
    const std::string table(columns.Text(0));
    if (!IsOwn(table)) there.insert(absl::StrCat(table, ".", columns.Text(1)));
  }
  EXPECT_GT(there.size(), 100);
  EXPECT_THAT(Known(Database::kSqlite), IsSupersetOf(there));
}

TEST(TablesTest, KnowEveryColumnOfPostgresql) {
  if (!postgresql::TestServer::Missing().empty()) GTEST_SKIP() << postgresql::TestServer::Missing();
  const std::string target = postgresql::TestServer::Get().Target("known_columns");
  postgresql::Pool pool({.connection = {.target = target}});
  ASSERT_TRUE(postgresql::Migrate(pool, postgresql::Migrations()).ok());
  const auto connection = postgresql::Connection::Open({.target = target}).value();
  auto columns = connection->Query(
      "SELECT table_name::text, column_name::text FROM information_schema.columns"
      " WHERE table_schema = current_schema()");
  ASSERT_TRUE(columns.ok()) << columns.status();
  std::set<std::string> there;
  while (columns->Step().value()) {
    const std::string table(columns->Text(0));
    if (!IsOwn(table)) there.insert(absl::StrCat(table, ".", columns->Text(1)));
  }
  EXPECT_GT(there.size(), 100);
  EXPECT_THAT(Known(Database::kPostgresql), IsSupersetOf(there));
}

}  // namespace
}  // namespace attune::store::copy
