// A layer cannot be taken off again, so each test restricts a process of its own.
#include "server/worker/landlock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "server/base/cage_kernel.h"

namespace attune::worker {
namespace {

namespace fs = std::filesystem;

bool Opens(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

class LandlockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LandlockVersion() == 0) GTEST_SKIP() << "this kernel has no Landlock";
    for (const char* name : {"seen", "scratch", "secret"}) fs::create_directories(root_ / name);
    for (const char* name : {"seen/file", "secret/file"}) std::ofstream(root_ / name) << "text";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string At(const char* name) const { return root_ / name; }
  bool Restrict() const {
    return SeeOnly({.readable = {At("seen"), At("nowhere")},
                    .executable = {},
                    .writable = {At("scratch")},
                    .devices = {"/dev/null"}})
        .ok();
  }

  const fs::path root_ = testing::TempDir() + "/landlock-" + std::to_string(getpid());
};

TEST_F(LandlockTest, NothingElseIsRead) {
  EXPECT_EXIT(
      {
        bool right = Restrict() && Opens(At("seen/file"), O_RDONLY) && Opens("/dev/null", O_RDWR);
        for (const std::string& path : {At("secret/file"), At("scratch/../secret/file"), std::string("/etc/passwd"),
                                        std::string("/proc/self/environ"), std::string("/")}) {
          right = right && !Opens(path, O_RDONLY);
        }
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(LandlockTest, ALinkShowsNothingElse) {
  fs::create_symlink(At("secret/file"), At("seen/link"));
  fs::create_symlink("/etc", At("scratch/etc"));
  EXPECT_EXIT(
      {
        const bool right =
            Restrict() && !Opens(At("seen/link"), O_RDONLY) && !Opens(At("scratch/etc/passwd"), O_RDONLY);
        _exit(right && symlink("/etc/passwd", At("scratch/passwd").c_str()) != 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(LandlockTest, NothingElseIsWritten) {
  EXPECT_EXIT(
      {
        bool right = Restrict() && Opens(At("scratch/new"), O_RDWR | O_CREAT) && !Opens(At("seen/file"), O_RDWR);
        right = right && !Opens(At("seen/new"), O_WRONLY | O_CREAT) && unlink(At("seen/file").c_str()) != 0;
        right = right && rename(At("seen/file").c_str(), At("scratch/file").c_str()) != 0;
        right = right && truncate(At("secret/file").c_str(), 0) != 0;
        right = right && mkdir(At("scratch/folder").c_str(), 0700) == 0 && rmdir(At("scratch/folder").c_str()) == 0;
        _exit(right && unlink(At("scratch/new").c_str()) == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(fs::exists(At("seen/file")));
}

TEST_F(LandlockTest, NothingElseIsExecuted) {
  EXPECT_EXIT(
      {
        if (!SeeOnly({.readable = {"/bin", "/lib", "/lib64", "/usr"},
                      .executable = {"/bin/true", "/lib64/ld-linux-x86-64.so.2"},
                      .writable = {},
                      .devices = {}})
                 .ok()) {
          _exit(1);
        }
        execl("/bin/false", "false", nullptr);
        execl("/bin/true", "true", nullptr);
        _exit(2);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(LandlockTest, LayersAddUp) {
  EXPECT_EXIT(
      {
        bool right = Restrict() && Opens(At("scratch/new"), O_RDWR | O_CREAT);
        right = right &&
                SeeOnly({.readable = {At("seen"), At("secret")}, .executable = {}, .writable = {}, .devices = {}}).ok();
        right = right && !Opens(At("scratch/new"), O_RDWR) && !Opens(At("secret/file"), O_RDONLY);
        _exit(right && Opens(At("seen/file"), O_RDONLY) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(LandlockTest, SignalsNobodyOutside) {
  if (LandlockVersion() < 6) GTEST_SKIP() << "Landlock before version 6 leaves signals alone";
  EXPECT_EXIT(
      {
        const bool right = Restrict() && kill(getppid(), 0) != 0 && kill(getpid(), 0) == 0;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attune::worker
