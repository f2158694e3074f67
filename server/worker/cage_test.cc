// A cage is not left again, so each test confines a process of its own.
#include "server/worker/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "server/base/cage_kernel.h"
#include "server/worker/system_calls.h"

namespace attune::worker {
namespace {

bool Reads(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

class CageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LandlockVersion() == 0) GTEST_SKIP() << "this kernel has no Landlock";
    std::filesystem::create_directories(scratch_);
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }
  Walls WallsOfCompiler() const { return {LimitsOfCompiler(), {}, {scratch_}}; }

  const std::string scratch_ = testing::TempDir() + "/cage-" + std::to_string(getpid());
};

TEST_F(CageTest, HidesPeoplesFiles) {
  EXPECT_EXIT(
      {
        bool right = Confine(WallsOfCompiler()).ok() && AllowCallsOfWorker().ok();
        for (const char* path : {"/etc/passwd", "/etc/shadow", "/etc/hostname", "/proc/self/environ", "/proc/self/mem",
                                 "/proc/1/environ", "/root", "/home", "/tmp", "/var", "/run", "."}) {
          right = right && !Reads(path);
        }
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// What PoCL does for each kernel that it compiles.
TEST_F(CageTest, ALinkerStillLinks) {
  if (access("/usr/bin/ld", X_OK) != 0) GTEST_SKIP() << "this host has no linker";
  EXPECT_EXIT(
      {
        const bool right = Confine(WallsOfCompiler()).ok() && AllowCallsOfWorker().ok();
        const pid_t child = fork();
        if (child == 0) {
          execl("/usr/bin/ld", "ld", "-shared", "-o", (scratch_ + "/empty.so").c_str(), "-lc", nullptr);
          _exit(9);
        }
        int status = -1;
        waitpid(child, &status, 0);
        _exit(right && status == 0 && Reads(scratch_ + "/empty.so") ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// Landlock leaves modes alone, and lengths before its version 3: the system calls say no.
TEST_F(CageTest, ChangesNoFileThatItMayNotWrite) {
  const std::string secret = testing::TempDir() + "/cage-secret-" + std::to_string(getpid());
  std::ofstream(secret) << "text";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EXIT(
      {
        Walls walls = WallsOfCompiler();
        walls.toolkit.push_back(secret);
        bool right = Confine(walls).ok() && AllowCallsOfWorker().ok();
        const int fd = open(secret.c_str(), O_RDONLY | O_CLOEXEC);
        right = right && fd >= 0 && fchmod(fd, 0666) != 0 && chmod(secret.c_str(), 0666) != 0;
        right = right && fchmodat(AT_FDCWD, secret.c_str(), 0666, 0) != 0;
        right = right && truncate(secret.c_str(), 0) != 0 && errno == EPERM;
        right = right && open(secret.c_str(), O_RDONLY | O_TRUNC) < 0 && errno == EPERM;
        // What it may write it may also cut short.
        const int own = open((scratch_ + "/own").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        _exit(right && own >= 0 && ftruncate(own, 0) == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(std::filesystem::file_size(secret), 4);
  EXPECT_EQ(std::filesystem::status(secret).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
  std::filesystem::remove(secret);
}

TEST_F(CageTest, NoShellStarts) {
  EXPECT_EXIT(
      {
        const bool right = Confine(WallsOfCompiler()).ok() && AllowCallsOfWorker().ok();
        _exit(right && system("true") == 127 << 8 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(CageTest, WhatTheEnvironmentNamesIsSeen) {
  setenv("OCL_ICD_VENDORS", "/a/vendors", 1);
  setenv("LD_LIBRARY_PATH", "/b/lib::/c", 1);
  const std::vector<std::string> files = SystemFiles();
  for (const char* path : {"/a/vendors", "/b/lib", "/c"}) {
    EXPECT_NE(std::find(files.begin(), files.end(), path), files.end()) << path;
  }
  EXPECT_EQ(std::find(files.begin(), files.end(), ""), files.end());
  unsetenv("OCL_ICD_VENDORS");
  unsetenv("LD_LIBRARY_PATH");
}

TEST(MissingWalls, NamesWhatTheKernelCannotDo) {
  EXPECT_EQ(MissingWalls().empty(), LandlockVersion() > 0);
  // As a container answers that forbids both: every filter of a worker's does.
  EXPECT_EXIT(
      {
        const bool right = AllowCallsOfWorker().ok();
        const std::vector<std::string> missing = MissingWalls();
        _exit(right && missing.size() == 2 && missing[0].find("seccomp") != std::string::npos &&
                      missing[1].find("Landlock") != std::string::npos
                  ? 0
                  : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attune::worker
