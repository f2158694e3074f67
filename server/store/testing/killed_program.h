// A program that a test kills, again and again, and a look at the database that it leaves.
#ifndef ATTUNE_SERVER_STORE_TESTING_KILLED_PROGRAM_H_
#define ATTUNE_SERVER_STORE_TESTING_KILLED_PROGRAM_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "server/store/files.h"
#include "server/store/sqlite/connection.h"

namespace attune::store {

// A program that works on the store in a directory until it is killed, and what it has printed.
class KilledProgram {
 public:
  KilledProgram(std::string program, const std::string& directory) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    output_ = FileDescriptor(ends[0]);
    const FileDescriptor input(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
    std::string argument = directory;
    std::array<char*, 3> argv = {program.data(), argument.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  ~KilledProgram() {
    if (pid_ > 0) Kill();
  }
  KilledProgram(const KilledProgram&) = delete;
  KilledProgram& operator=(const KilledProgram&) = delete;

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
    EXPECT_TRUE(WIFSIGNALED(status)) << "the program ended by itself, with " << WEXITSTATUS(status);
    while (ReadSome()) {
    }
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines = absl::StrSplit(printed_, '\n');
    lines.pop_back();  // after the last newline
    return lines;
  }

 private:
  pid_t pid_ = -1;
  FileDescriptor output_;
  std::string printed_;
};

inline std::string IntegrityCheck(const std::string& file) {
  absl::StatusOr<std::unique_ptr<sqlite::Connection>> connection =
      sqlite::Connection::Open(file, sqlite::Connection::Access::kWrite);
  if (!connection.ok()) return connection.status().ToString();
  sqlite::Statement check(**connection, "PRAGMA integrity_check");
  absl::StatusOr<bool> row = check.Step();
  return row.ok() ? std::string(check.Text(0)) : row.status().ToString();
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_KILLED_PROGRAM_H_
