#include "server/store/sqlite/writer.h"

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/store/sqlite/database.h"
#include "server/store/testing/test_directory.h"

namespace attune::store::sqlite {
namespace {

// Counts the commits of its connection.
class WriterTest : public testing::Test {
 protected:
  WriterTest() {
    absl::StatusOr<std::unique_ptr<Connection>> connection = OpenWriter(file_);
    EXPECT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE((*connection)->Execute("CREATE TABLE t (a INTEGER NOT NULL UNIQUE) STRICT").ok());
    sqlite3_commit_hook((*connection)->handle(),
                        [](void* commits) {
                          ++*static_cast<std::atomic<int>*>(commits);
                          return 0;
                        },
                        &commits_);
    handle_ = (*connection)->handle();
    writer_ = std::make_unique<Writer>(*std::move(connection));
  }

  static Writer::Request Insert(int value) {
    return [value](Connection& connection) {
      return Statement(connection, "INSERT INTO t (a) VALUES (?)").Bind(value).Run();
    };
  }

  int64_t Count() {
    absl::StatusOr<std::unique_ptr<Connection>> reader = OpenReader(file_);
    return Statement(**reader, "SELECT count(*) FROM t").FindInt().value().value();
  }

  // Runs all requests in one group: they queue up while the writer is held inside a commit of its own.
  std::vector<absl::Status> WriteTogether(const std::vector<Writer::Request>& requests) {
    std::promise<void> entered;
    std::promise<void> release;
    std::thread holder([&] {
      bool first = true;
      EXPECT_TRUE(writer_
                      ->Write([&](Connection&) {
                        if (std::exchange(first, false)) {
                          entered.set_value();
                          release.get_future().wait();
                        }
                        return absl::OkStatus();
                      })
                      .ok());
    });
    entered.get_future().wait();
    commits_ = 0;
    std::vector<absl::Status> statuses(requests.size());
    std::vector<std::thread> threads;
    threads.reserve(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      threads.emplace_back([&, i] { statuses[i] = writer_->Write(requests[i]); });
    }
    while (writer_->waiting() < requests.size()) std::this_thread::yield();
    release.set_value();
    holder.join();
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  const TestDirectory directory_;
  const std::string file_ = directory_.path() + "/attune.db";
  std::atomic<int> commits_{0};
  sqlite3* handle_ = nullptr;  // the writer's
  std::unique_ptr<Writer> writer_;
};

TEST_F(WriterTest, ShowsAWriteToReadersOnceItReturns) {
  ASSERT_TRUE(writer_->Write(Insert(1)).ok());
  EXPECT_EQ(Count(), 1);
}

TEST_F(WriterTest, CommitsWhatWaitedTogether) {
  std::vector<Writer::Request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(Insert(i));
  for (const absl::Status& status : WriteTogether(requests)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Count(), 20);
  EXPECT_LE(commits_, 2);  // the holder's, if it changed anything, and the group's
}

TEST_F(WriterTest, FailsOneRequestWithoutTheOthersOfItsGroup) {
  const Writer::Request half_done = [](Connection& connection) {
    EXPECT_TRUE(Insert(100)(connection).ok());
    return absl::AbortedError("changed its mind");
  };
  const std::vector<absl::Status> statuses = WriteTogether({Insert(1), half_done, Insert(2)});
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(statuses[1], absl::AbortedError("changed its mind"));
  EXPECT_TRUE(statuses[2].ok()) << statuses[2];
  EXPECT_EQ(Count(), 2);
}

TEST_F(WriterTest, CommitsTheOthersWhenOneRollsTheWholeGroupBack) {
  const Writer::Request poison = [](Connection& connection) {
    EXPECT_TRUE(connection.Execute("ROLLBACK").ok());  // as SQLite does on a full disk
    return absl::ResourceExhaustedError("disk full");
  };
  const std::vector<absl::Status> statuses = WriteTogether({Insert(1), poison, Insert(2)});
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(statuses[2].ok()) << statuses[2];
  EXPECT_EQ(Count(), 2);
}

// Each wait for a lock takes seconds, and those who have asked wait for their answers.
TEST_F(WriterTest, WaitsOnceForALockOfAnotherProcessAndThenTellsEverybody) {
  const std::unique_ptr<Connection> other = Connection::Open(file_, Connection::Access::kWrite).value();
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  std::atomic<int> waits = 0;
  sqlite3_busy_handler(
      handle_,
      [](void* count, int) {
        ++*static_cast<std::atomic<int>*>(count);
        return 0;  // no more
      },
      &waits);
  const absl::Status status = writer_->Write(Insert(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(file_ + " is locked by another process"), std::string::npos) << status;
  EXPECT_EQ(waits, 1);
  ASSERT_TRUE(other->Execute("ROLLBACK").ok());
  EXPECT_TRUE(writer_->Write(Insert(1)).ok());
}

TEST_F(WriterTest, CommitsWhatWaitsBeforeItCloses) {
  ASSERT_TRUE(writer_->Write(Insert(1)).ok());
  writer_.reset();
  EXPECT_FALSE(std::filesystem::exists(file_ + "-wal")) << "the last connection checkpoints and removes the log";
  EXPECT_EQ(Count(), 1);
}

TEST_F(WriterTest, SyncsEveryCommitAndChecksReferences) {
  ASSERT_TRUE(writer_
                  ->Write([](Connection& connection) {
                    EXPECT_EQ(Statement(connection, "PRAGMA synchronous").FindInt().value(), 2);  // FULL
                    EXPECT_EQ(Statement(connection, "PRAGMA foreign_keys").FindInt().value(), 1);
                    EXPECT_EQ(Statement(connection, "PRAGMA wal_autocheckpoint").FindInt().value(), 1000);
                    Statement mode(connection, "PRAGMA journal_mode");
                    EXPECT_TRUE(*mode.Step());
                    EXPECT_EQ(mode.Text(0), "wal");
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST_F(WriterTest, ReadersCannotWriteOrCheckpoint) {
  absl::StatusOr<std::unique_ptr<Connection>> reader = OpenReader(file_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Execute("INSERT INTO t (a) VALUES (1)").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE((*reader)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").ok());
}

}  // namespace
}  // namespace attune::store::sqlite
