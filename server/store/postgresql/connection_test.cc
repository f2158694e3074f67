#include "server/store/postgresql/connection.h"

#include <stdlib.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/postgresql/errors.h"
#include "server/store/postgresql/testing/server.h"

namespace attune::store::postgresql {
namespace {

using testing::HasSubstr;
using testing::Not;

class PostgresqlConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestServer::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    connection_ = Open();
  }

  static std::unique_ptr<Connection> Open() {
    absl::StatusOr<std::unique_ptr<Connection>> opened =
        Connection::Open({.target = TestServer::Get().Target("connection")});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  std::unique_ptr<Connection> connection_;
};

TEST_F(PostgresqlConnectionTest, ValuesComeBackAsTheyWent) {
  const std::string bytes("\0\1\xff'\\", 5);
  absl::StatusOr<Rows> rows = connection_->Query(
      "SELECT $1, $2, $3, $4, $5, $6, 7::smallint, -7::int, $7, $8", int64_t{1} << 62, int64_t{-2}, true, "a 'text' é",
      Blob{bytes}, std::optional<int64_t>(), -2.5, std::numeric_limits<double>::infinity());
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_TRUE(*rows->Step());
  EXPECT_EQ(rows->Int(0), int64_t{1} << 62);
  EXPECT_EQ(rows->Int(1), -2);
  EXPECT_TRUE(rows->Bool(2));
  EXPECT_EQ(rows->Text(3), "a 'text' é");
  EXPECT_EQ(rows->Bytes(4), bytes);
  EXPECT_TRUE(rows->IsNull(5));
  EXPECT_EQ(rows->Int(6), 7);
  EXPECT_EQ(rows->Int(7), -7);
  EXPECT_EQ(rows->Real(8), -2.5);
  EXPECT_EQ(rows->Real(9), std::numeric_limits<double>::infinity());
  EXPECT_FALSE(*rows->Step());
}

TEST_F(PostgresqlConnectionTest, AMegabyteGoesThereAndBack) {
  const std::string bytes(8 << 20, 'x');
  absl::StatusOr<Rows> rows = connection_->Query("SELECT $1", Blob{bytes});
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_TRUE(*rows->Step());
  EXPECT_EQ(rows->Bytes(0), bytes);
}

TEST_F(PostgresqlConnectionTest, ErrorsSayWhatTheyMean) {
  ASSERT_TRUE(connection_->ExecuteScript("CREATE TEMP TABLE one (id bigint PRIMARY KEY)").ok());
  ASSERT_TRUE(connection_->Execute("INSERT INTO one VALUES (1)").ok());
  const auto code = [this](const std::string& sql) { return connection_->Execute(sql).code(); };
  EXPECT_EQ(code("INSERT INTO one VALUES (1)"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code("SELECT * FROM nothing"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("SELECT 1 / 0"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("DROP TABLE pg_class"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("SELEC 1"), absl::StatusCode::kInternal);
  EXPECT_EQ(connection_->Execute("SELECT $1", std::string("\0", 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(connection_->Execute("SELECT $1", "\xff").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(connection_->Execute("SELECT 1").ok()) << "errors of statements end no connection";
}

TEST_F(PostgresqlConnectionTest, AStatementThatTakesTooLongEndsTheConnection) {
  absl::StatusOr<std::unique_ptr<Connection>> hasty =
      Connection::Open({.target = TestServer::Get().Target("connection"), .statement = absl::Milliseconds(50)});
  ASSERT_TRUE(hasty.ok()) << hasty.status();
  const absl::Status late = (*hasty)->Execute("SELECT pg_sleep(600)");
  EXPECT_TRUE(IsLostConnection(late)) << late;
  EXPECT_TRUE((*hasty)->lost());
  EXPECT_TRUE(IsLostConnection((*hasty)->Execute("SELECT 1")));
}

TEST_F(PostgresqlConnectionTest, ASessionThatTheServerEndsIsLost) {
  const std::unique_ptr<Connection> other = Open();
  absl::StatusOr<Rows> session = connection_->Query("SELECT pg_backend_pid()");
  ASSERT_TRUE(session.ok() && *session->Step());
  ASSERT_TRUE(other->Execute("SELECT pg_terminate_backend($1::int)", session->Int(0)).ok());
  const absl::Status lost = connection_->Execute("SELECT pg_sleep(600)");
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsLostConnection(lost)) << lost;
  EXPECT_TRUE(connection_->lost());
}

TEST_F(PostgresqlConnectionTest, ATransactionThatIsNotCommittedLeavesNothing) {
  ASSERT_TRUE(connection_->ExecuteScript("CREATE TEMP TABLE kept (id bigint)").ok());
  for (const bool commit : {false, true}) {
    absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
    ASSERT_TRUE(transaction.ok()) << transaction.status();
    ASSERT_TRUE(connection_->Execute("INSERT INTO kept VALUES (1)").ok());
    EXPECT_TRUE(connection_->InTransaction());
    if (commit) {
      EXPECT_TRUE((*transaction)->Commit().ok());
    }
    transaction->reset();
    EXPECT_FALSE(connection_->InTransaction());
    absl::StatusOr<Rows> count = connection_->Query("SELECT count(*) FROM kept");
    ASSERT_TRUE(count.ok() && *count->Step());
    EXPECT_EQ(count->Int(0), commit ? 1 : 0);
  }
}

// After an error in it, COMMIT is answered with ROLLBACK and no error.
TEST_F(PostgresqlConnectionTest, ACommitThatRolledBackIsAnError) {
  absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
  ASSERT_TRUE(transaction.ok()) << transaction.status();
  EXPECT_FALSE(connection_->Execute("SELECT 1 / 0").ok());
  EXPECT_EQ((*transaction)->Commit().code(), absl::StatusCode::kAborted);
}

TEST_F(PostgresqlConnectionTest, SessionsAreCareful) {
  const std::string careless =
      TestServer::Get().Target("connection") + " options='-csynchronous_commit=off -clock_timeout=0'";
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open({.target = careless});
  ASSERT_TRUE(connection.ok()) << connection.status();
  for (const auto& [setting, value] : {std::pair("synchronous_commit", "on"),
                                       {"lock_timeout", "10s"},
                                       {"idle_in_transaction_session_timeout", "10s"}}) {
    absl::StatusOr<Rows> set = (*connection)->Query("SELECT current_setting($1)", setting);
    ASSERT_TRUE(set.ok() && *set->Step());
    EXPECT_EQ(set->Text(0), value) << setting;
  }
}

TEST_F(PostgresqlConnectionTest, SynchronousReplicasAreLeftToTheirAdministrator) {
  const std::string stricter = TestServer::Get().Target("connection") + " options='-csynchronous_commit=remote_apply'";
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open({.target = stricter});
  ASSERT_TRUE(connection.ok()) << connection.status();
  absl::StatusOr<Rows> setting = (*connection)->Query("SHOW synchronous_commit");
  ASSERT_TRUE(setting.ok() && *setting->Step());
  EXPECT_EQ(setting->Text(0), "remote_apply");
}

class UnreachableTest : public testing::Test {
 protected:
  static absl::Status Open(const std::string& target) {
    return Connection::Open({.target = target, .connecting = absl::Milliseconds(300)}).status();
  }
};

TEST_F(UnreachableTest, NobodyThere) {
  const absl::Status nobody = Open("host=/tmp/attune_no_such_folder dbname=attune");
  EXPECT_EQ(nobody.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsLostConnection(nobody));
  EXPECT_THAT(std::string(nobody.message()), HasSubstr("/tmp/attune_no_such_folder"));
}

TEST_F(UnreachableTest, NoMessageHasThePassword) {
  const char* const secret = "xyzzy-1729";
  for (const std::string& target :
       {absl::StrCat("postgresql://me:", secret, "@127.0.0.1:1/attune"),
        absl::StrCat("postgresql://me:", secret, "@127.0.0.1:port:/attune"),
        absl::StrCat("password=", secret, " hos=x"), absl::StrCat("password='", secret),
        absl::StrCat("postgresql://me:", secret, "%zz@h/attune"),
        absl::StrCat("postgresql://127.0.0.1:1/attune?password=", secret, "&sslmode=", secret)}) {
    const absl::Status refused = Open(target);
    EXPECT_FALSE(refused.ok()) << target;
    EXPECT_THAT(refused.ToString(), Not(HasSubstr(secret)));
  }
}

TEST_F(UnreachableTest, AStringThatIsNoneSaysWhatItMustBe) {
  const absl::Status refused = Open("postgresql://host/attune?no_such_option=1");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("postgresql://[USER@]HOST[:PORT]/DATABASE"));
}

TEST_F(PostgresqlConnectionTest, WhoIsRefusedMeetsNoOutage) {
  const std::string here = TestServer::Get().Target("connection");
  for (const char* const wrong : {" dbname=attune_no_such", " user=attune_no_such", " options=-cno_such_setting=1"}) {
    const absl::Status refused = Connection::Open({.target = absl::StrCat(here, wrong)}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << wrong;
    EXPECT_TRUE(IsRefused(refused)) << wrong << refused;
    EXPECT_FALSE(IsUnreachable(refused)) << wrong;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("no_such")) << wrong;
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("LOCATION"))) << wrong;
  }
}

TEST_F(UnreachableTest, WhereNobodyIsItIsAnOutage) {
  for (const char* const nobody : {"host=/tmp/attune_no_such_folder dbname=attune",
                                   "postgresql://me@127.0.0.1:1/attune", "postgresql://me@attune.invalid/attune"}) {
    const absl::Status away = Open(nobody);
    EXPECT_TRUE(IsUnreachable(away) && !IsDoubtful(away)) << away;
  }
}

TEST(NoConnectionTest, SaysWhatAServerSaidAndWhetherItMayPass) {
  const auto refused = [](absl::string_view verbose) { return IsRefused(NoConnection(verbose, false, {}, "here")); };
  EXPECT_TRUE(refused("connection to server failed: FATAL:  28P01: password authentication failed\n"));
  EXPECT_TRUE(refused("connection to server failed: FATAL:  28000: no pg_hba.conf entry\nLOCATION:  here, auth.c:1\n"));
  EXPECT_TRUE(refused("at \"a\" failed: timeout expired\nat \"b\" failed: FATAL:  3D000: database does not exist\n"));
  EXPECT_FALSE(refused("connection to server failed: FATAL:  57P03: the database system is starting up\n"));
  EXPECT_FALSE(refused("connection to server failed: FATAL:  53300: sorry, too many clients already\n"));
  EXPECT_FALSE(refused("connection to server failed: Connection refused\n"));
  EXPECT_FALSE(refused(""));
  EXPECT_TRUE(IsRefused(NoConnection("fe_sendauth: no password supplied\n", true, {}, "here")));
  EXPECT_EQ(
      NoConnection("to abc failed: FATAL:  28P01: no abc\nLOCATION:  a, b.c:1\n", false, {"abc"}, "here").message(),
      "here: to ... failed: FATAL:  no ...");
}

TEST(NoConnectionTest, WhatIsNoOutagesReasonIsDoubtful) {
  const auto doubtful = [](absl::string_view verbose) {
    const absl::Status status = NoConnection(verbose, false, {}, "here");
    return IsUnreachable(status) && IsDoubtful(status);
  };
  for (const absl::string_view mistake :
       {"connection to server at \"a\", port 5432 failed: server does not support SSL, but SSL was required\n",
        "connection to server at \"a\", port 5432 failed: SSL error: certificate verify failed\n",
        "connection to server at \"a\", port 5432 failed: root certificate file \"/etc/no.crt\" does not exist\n"
        "Either provide the file or change sslmode to disable server certificate verification.\n",
        "connection to server at \"a\" failed: could not read certificate file \"x\": No such file or directory\n",
        "at \"a\" failed: Connection refused\nat \"b\" failed: SSL error: certificate verify failed\n",
        "connection to server failed: FATAL:  XX000: internal error\n", ""}) {
    EXPECT_TRUE(doubtful(mistake)) << mistake;
  }
  for (const absl::string_view outage :
       {"connection to server at \"a\", port 5432 failed: Connection refused\n"
        "\tIs the server running on that host and accepting TCP/IP connections?\n",
        "connection to server on socket \"/a/.s.PGSQL.5432\" failed: No such file or directory\n"
        "\tIs the server running locally and accepting connections on that socket?\n",
        "could not translate host name \"db.example\" to address: Name or service not known\n",
        "connection to server at \"a\", port 5432 failed: timeout expired\n",
        "connection to server at \"a\", port 5432 failed: server closed the connection unexpectedly\n"
        "\tThis probably means the server terminated abnormally\n",
        "connection to server failed: FATAL:  57P03: the database system is starting up\n",
        "connection to server failed: FATAL:  53300: sorry, too many clients already\n"}) {
    EXPECT_FALSE(doubtful(outage)) << outage;
  }
}

TEST(PlaceOfTest, IsTheDatabaseWithoutAPassword) {
  const std::string url = PlaceOf("postgresql://me:geheim@db.invalid:5433/attune?application_name=one");
  EXPECT_EQ(url, "host=db.invalid port=5433 dbname=attune user=me");
  EXPECT_EQ(PlaceOf("host=db.invalid port=5433 dbname=attune user=me password=other"), url);
  EXPECT_NE(PlaceOf("host=db.invalid port=5433 dbname=attune user=me options=-csearch_path=two"), url);
}

TEST(WithoutSecretsTest, TakesThemOut) {
  EXPECT_EQ(WithoutSecrets("no entry \"abc\"\n\tof abc\n", {"", "abc"}), "no entry \"...\";  of ...");
}

}  // namespace
}  // namespace attune::store::postgresql
