// A cage is not left again, so each test confines a process of its own.
#include "server/worker/cage.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
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
