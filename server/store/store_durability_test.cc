// What was reported committed is there after kill -9, whenever it comes.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "server/store/files.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

// A store_appender, and what it has printed.
class Appender {
 public:
  explicit Appender(const std::string& directory) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    output_ = FileDescriptor(ends[0]);
    const FileDescriptor input(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
    std::string program = STORE_APPENDER;
    std::string argument = directory;
    std::array<char*, 3> argv = {program.data(), argument.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  ~Appender() {
    if (pid_ > 0) Kill();
  }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  // False at the end of the output.
  bool ReadSome() {
    std::array<char, 4096> block{};
    const ssize_t got = read(output_.get(), block.data(), block.size());
    if (got <= 0) return false;
    printed_.append(block.data(), static_cast<size_t>(got));
    return true;
  }

  void Kill() {
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    EXPECT_TRUE(WIFSIGNALED(status)) << "the appender ended by itself, with " << WEXITSTATUS(status);
    while (ReadSome()) {
    }
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names = absl::StrSplit(printed_, '\n');
    names.pop_back();  // after the last newline
    return names;
  }

 private:
  pid_t pid_ = -1;
  FileDescriptor output_;
  std::string printed_;
};

std::string IntegrityCheck(const std::string& file) {
  absl::StatusOr<std::unique_ptr<sqlite::Connection>> connection =
      sqlite::Connection::Open(file, sqlite::Connection::Access::kWrite);
  if (!connection.ok()) return connection.status().ToString();
  sqlite::Statement check(**connection, "PRAGMA integrity_check");
  absl::StatusOr<bool> row = check.Step();
  return row.ok() ? std::string(check.Text(0)) : row.status().ToString();
}

TEST(Durability, LosesNothingThatWasReportedWhenKilled) {
  constexpr int kKills = 40;
  const TestDirectory directory;
  std::mt19937 random(20261120);  // the moments differ from run to run all the same
  std::vector<std::string> reported;
  for (int round = 0; round < kKills; ++round) {
    Appender appender(directory.path());
    // At least one, so that each round starts from a store and not from a half-made process.
    const size_t enough = 1 + random() % 80;
    while (appender.Names().size() < enough) ASSERT_TRUE(appender.ReadSome());
    appender.Kill();
    for (std::string& name : appender.Names()) reported.push_back(std::move(name));

    ASSERT_EQ(IntegrityCheck(directory.path() + "/attune.db"), "ok") << "after kill " << round;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    for (const std::string& name : reported) {
      absl::StatusOr<v1::Trial> trial = (*store)->GetTrial(name);
      ASSERT_TRUE(trial.ok()) << trial.status();
      ASSERT_GE(trial->detail().size(), 20'000U) << name;
      ASSERT_EQ(trial->detail().find_first_not_of(trial->detail()[0]), std::string::npos) << name;
    }
  }
}

// Killed while the store is being made: the next start makes it whole.
TEST(Durability, OpensAfterAKillDuringTheFirstStart) {
  for (int round = 0; round < 10; ++round) {
    const TestDirectory directory;
    { Appender(directory.path()).Kill(); }
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory.path()});
    ASSERT_TRUE(store.ok()) << store.status();
  }
}

}  // namespace
}  // namespace attune::store
