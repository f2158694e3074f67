#include "server/store/postgresql/pool.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/testing/logged.h"
#include "server/store/postgresql/errors.h"
#include "server/store/postgresql/testing/server.h"

namespace attune::store::postgresql {
namespace {

size_t Count(const std::string& text, const char* words) {
  return std::vector<std::string>(absl::StrSplit(text, words)).size() - 1;
}

class PostgresqlPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestServer::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    target_ = TestServer::Get().Target("pool");
  }

  static absl::Status Make(Pool& pool, const std::string& table) {
    return pool.Do([&](Connection& connection) {
      return connection.ExecuteScript("DROP TABLE IF EXISTS " + table + "; CREATE TABLE " + table +
                                      " (id bigint PRIMARY KEY, value bigint); INSERT INTO " + table +
                                      " VALUES (1, 0), (2, 0)");
    });
  }
  static int64_t Sum(Pool& pool, const std::string& table) {
    int64_t sum = -1;
    EXPECT_TRUE(pool.Do([&](Connection& connection) -> absl::Status {
                      absl::StatusOr<Rows> rows = connection.Query("SELECT sum(value)::bigint FROM " + table);
                      if (!rows.ok()) return rows.status();
                      if (*rows->Step()) sum = rows->Int(0);
                      return absl::OkStatus();
                    })
                    .ok());
    return sum;
  }

  std::string target_;
};

TEST_F(PostgresqlPoolTest, TransactionsThatDeadlockAreBothDone) {
  Pool pool({.connection = {.target = target_}, .patience = absl::Minutes(3)});
  ASSERT_TRUE(Make(pool, "crossed").ok());
  std::atomic<int> tries = 0;
  const auto cross = [&](int first) {
    const absl::Status done = pool.Transact([&](Connection& connection) -> absl::Status {
      const auto add = [&](int id) {
        return connection.Execute("UPDATE crossed SET value = value + 1 WHERE id = $1", id);
      };
      if (absl::Status status = connection.Execute("SET LOCAL deadlock_timeout = '10ms'"); !status.ok()) return status;
      if (absl::Status status = add(first); !status.ok()) return status;
      ++tries;
      while (tries < 2) std::this_thread::yield();  // each has its first row before it wants its second
      return add(3 - first);
    });
    EXPECT_TRUE(done.ok()) << done;
  };
  {
    const std::jthread one(cross, 1);
    const std::jthread two(cross, 2);
  }
  EXPECT_GE(tries, 3) << "one of them was done twice";
  EXPECT_EQ(Sum(pool, "crossed"), 4);
}

TEST_F(PostgresqlPoolTest, ManyShareAFewConnections) {
  Pool pool({.connection = {.target = target_}, .most_connections = 2});
  ASSERT_TRUE(Make(pool, "shared").ok());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 20; ++k) {
          EXPECT_TRUE(pool.Transact([&](Connection& connection) {
                            return connection.Execute("UPDATE shared SET value = value + 1 WHERE id = 1");
                          })
                          .ok());
        }
      });
    }
  }
  EXPECT_EQ(Sum(pool, "shared"), 160);
}

TEST_F(PostgresqlPoolTest, ALostConnectionIsMadeAnewAndTheWorkDoneAgain) {
  Pool pool({.connection = {.target = target_}, .patience = absl::Minutes(3)});
  int tries = 0;
  absl::Status done;
  const std::string logged = Logged([&] {
    done = pool.Do([&](Connection& connection) {
      if (++tries < 3) return connection.Execute("SELECT pg_terminate_backend(pg_backend_pid())");
      return connection.Execute("SELECT 1");
    });
  });
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(Count(logged, "database away"), 1) << logged;
  EXPECT_EQ(Count(logged, "database back"), 1) << logged;
}

TEST_F(PostgresqlPoolTest, ClosedItDoesNothingUntilItIsOpened) {
  Pool pool({.connection = {.target = target_}, .patience = absl::Minutes(3)});
  const auto work = [](Connection& connection) { return connection.Execute("SELECT 1"); };
  EXPECT_TRUE(pool.Do(work).ok());
  EXPECT_TRUE(pool.reached());
  pool.Close(absl::UnavailableError("not yet"));
  EXPECT_EQ(pool.Do(work).message(), "not yet");
  EXPECT_FALSE(pool.reached());
  pool.Open();
  EXPECT_TRUE(pool.Do(work).ok());
  EXPECT_TRUE(pool.reached());
}

TEST_F(PostgresqlPoolTest, WhereNobodyAnswersItSaysWhenToAskAgain) {
  Pool pool({.connection = {.target = "host=/tmp/attune_no_such_folder"}, .patience = absl::ZeroDuration()});
  absl::Status away;
  const std::string logged = Logged([&] {
    for (int i = 0; i < 3; ++i) away = pool.Do([](Connection&) { return absl::OkStatus(); });
  });
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(away.message()), testing::StartsWith("the database is away: "));
  EXPECT_TRUE(IsLostConnection(away)) << "what kind of error it is stays known";
  EXPECT_TRUE(away.GetPayload(kRetryDelayUrl).has_value());
  EXPECT_FALSE(pool.reached());
  EXPECT_EQ(Count(logged, "database away"), 1) << logged;
}

TEST_F(PostgresqlPoolTest, AnErrorOfTheWorkItselfIsNotTriedAgain) {
  Pool pool({.connection = {.target = target_}});
  int tries = 0;
  const absl::Status done = pool.Do([&](Connection& connection) {
    ++tries;
    return connection.Execute("SELECT 1 / 0");
  });
  EXPECT_EQ(done.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tries, 1);
}

TEST_F(PostgresqlPoolTest, WorkThatFailsLeavesNoTransactionBehind) {
  Pool pool({.connection = {.target = target_}, .most_connections = 1});
  ASSERT_TRUE(Make(pool, "abandoned").ok());
  const absl::Status failed = pool.Transact([&](Connection& connection) -> absl::Status {
    EXPECT_TRUE(connection.Execute("UPDATE abandoned SET value = 7").ok());
    return absl::CancelledError("thought better of it");
  });
  EXPECT_EQ(failed.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Sum(pool, "abandoned"), 0);
}

}  // namespace
}  // namespace attune::store::postgresql
