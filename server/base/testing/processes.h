// What tests of processes share.
#ifndef ATTUNE_SERVER_BASE_TESTING_PROCESSES_H_
#define ATTUNE_SERVER_BASE_TESTING_PROCESSES_H_

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace attune {

// Neither running children nor zombies.
inline bool HasNoChildren() {
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

// Blocks until there are none, at most a minute.
inline bool AwaitNoChildren() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!HasNoChildren()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A directory that goes away with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = ::testing::TempDir() + "attune_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Holds a fake worker in "wait <path>" from Reached to Open.
class Gate {
 public:
  explicit Gate(const std::string& path) : path_(path) { EXPECT_EQ(mkfifo(path.c_str(), 0600), 0); }
  const std::string& path() const { return path_; }
  std::string what() const { return "wait " + path_; }
  // Blocks until the worker waits.
  void Reached() { fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC); }
  void Open() { close(fd_); }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_TESTING_PROCESSES_H_
