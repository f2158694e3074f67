#include "server/store/sqlite/connection.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/test_directory.h"

namespace attune::store::sqlite {
namespace {

using testing::HasSubstr;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    absl::StatusOr<std::unique_ptr<Connection>> connection =
        Connection::Open(directory_.path() + "/test.db", Connection::Access::kWrite);
    EXPECT_TRUE(connection.ok()) << connection.status();
    connection_ = *std::move(connection);
    EXPECT_TRUE(connection_->Execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a ANY UNIQUE) STRICT").ok());
  }

  int64_t Count() { return Statement(*connection_, "SELECT count(*) FROM t").FindInt().value().value(); }

  const TestDirectory directory_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, BindsEveryTypeAndReadsItBack) {
  Statement row(*connection_, "SELECT ?, ?, ?, ?, ?, ?");
  const std::string text("a\0b", 3);
  ASSERT_TRUE(
      *row.Bind(int64_t{1} << 40, 0.5, text, Blob{"\xff"}, std::optional<int64_t>(), absl::string_view()).Step());
  EXPECT_EQ(row.Int(0), int64_t{1} << 40);
  EXPECT_EQ(row.Real(1), 0.5);
  EXPECT_EQ(row.Text(2), text);
  EXPECT_EQ(row.Bytes(3), "\xff");
  EXPECT_TRUE(row.IsNull(4));
  EXPECT_FALSE(row.IsNull(5));
  EXPECT_EQ(row.Text(5), "");
}

TEST_F(ConnectionTest, ForgetsTheValuesOfAStatementsFormerUse) {
  ASSERT_TRUE(Statement(*connection_, "INSERT INTO t (a) VALUES (?)").Bind("first").Run().ok());
  ASSERT_TRUE(Statement(*connection_, "INSERT INTO t (a) VALUES (?)").Run().ok());
  EXPECT_EQ(Statement(*connection_, "SELECT count(*) FROM t WHERE a IS NULL").FindInt().value(), 1);
}

TEST_F(ConnectionTest, RunsOneTextTwiceAtOnce) {
  ASSERT_TRUE(connection_->Execute("INSERT INTO t (a) VALUES (1), (2)").ok());
  Statement outer(*connection_, "SELECT a FROM t ORDER BY a");
  Statement inner(*connection_, "SELECT a FROM t ORDER BY a");
  ASSERT_TRUE(*outer.Step());
  ASSERT_TRUE(*inner.Step());
  ASSERT_TRUE(*inner.Step());
  EXPECT_EQ(outer.Int(0), 1);
  EXPECT_EQ(inner.Int(0), 2);
}

TEST_F(ConnectionTest, KeepsTheFirstErrorOfAStatement) {
  Statement statement(*connection_, "SELECT a FROM nowhere");
  statement.Bind(1);
  const absl::Status status = statement.Step().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no such table: nowhere"));
  EXPECT_EQ(statement.Step().status(), status);
}

TEST_F(ConnectionTest, SaysAlreadyExistsForADuplicate) {
  ASSERT_TRUE(connection_->Execute("INSERT INTO t (a) VALUES (1)").ok());
  EXPECT_EQ(connection_->Execute("INSERT INTO t (a) VALUES (1)").code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(ConnectionTest, SaysDiskFullWhenTheFileMayNotGrow) {
  ASSERT_TRUE(connection_->Execute("PRAGMA max_page_count = 3").ok());
  const absl::Status status = connection_->Execute("INSERT INTO t (a) VALUES (zeroblob(100000))");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(connection_->file()));
}

TEST_F(ConnectionTest, RollsBackATransactionThatIsNotCommitted) {
  {
    absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(connection_->Execute("INSERT INTO t (a) VALUES (1)").ok());
  }
  EXPECT_EQ(Count(), 0);
  {
    absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
    ASSERT_TRUE(connection_->Execute("INSERT INTO t (a) VALUES (1)").ok());
    ASSERT_TRUE((*transaction)->Commit().ok());
  }
  EXPECT_EQ(Count(), 1);
}

TEST_F(ConnectionTest, SaysDataLossForAFileThatIsNoDatabase) {
  const std::string file = directory_.path() + "/text.db";
  std::ofstream(file) << std::string(4096, 'x');
  absl::StatusOr<std::unique_ptr<Connection>> other = Connection::Open(file, Connection::Access::kRead);
  const absl::Status status = other.ok() ? Statement(**other, "SELECT * FROM t").Step().status() : other.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(file));
}

TEST_F(ConnectionTest, SaysUnavailableForAFileThatCannotBeOpenedForWhateverReason) {
  const std::string file = directory_.path() + "/missing/test.db";
  const absl::Status status = Connection::Open(file, Connection::Access::kWrite).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(file));
}

}  // namespace
}  // namespace attune::store::sqlite
