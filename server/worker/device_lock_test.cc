#include "server/worker/device_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/processes.h"

namespace attune::worker {
namespace {

using ::testing::HasSubstr;

// Another process that runs `work`, reports that it has, and then waits until it is ended.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<bool()>& work) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const char answer = work() ? 'y' : 'n';
      (void)!write(ready[1], &answer, 1);
      while (true) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~OtherProcess() { End(); }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class DeviceLockTest : public ::testing::Test {
 protected:
  std::string locks() const { return directory_.path() + "/a/b"; }
  absl::StatusOr<DeviceLock> Take(const std::string& id, const std::string& uuid = "") {
    attune::v1::Device device;
    device.set_id(id);
    device.set_uuid(uuid);
    return DeviceLock::Take(locks(), device);
  }
  std::string Refusal(const std::string& id, const std::string& uuid = "") {
    const absl::StatusOr<DeviceLock> lock = Take(id, uuid);
    EXPECT_TRUE(absl::IsFailedPrecondition(lock.status())) << lock.status();
    return std::string(lock.status().message());
  }
  // Takes the lock and never lets go of it.
  bool Keep(const std::string& id, const std::string& uuid = "") {
    static absl::StatusOr<DeviceLock> kept = Take(id, uuid);
    return kept.ok();
  }
  TemporaryDirectory directory_;
};

TEST_F(DeviceLockTest, IsHeldByOneProcessAtATime) {
  OtherProcess other([&] { return Keep("cuda:0"); });
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr(absl::StrCat("in use by process ", other.pid(), ",")));
  EXPECT_TRUE(Take("cuda:1").ok());
  other.End();
  EXPECT_TRUE(Take("cuda:0").ok());
}

TEST_F(DeviceLockTest, IsThePhysicalDevicesWhateverItsIndex) {
  const OtherProcess other([&] { return Keep("cuda:0", "GPU-1234"); });
  EXPECT_THAT(Refusal("cuda:1", "GPU-1234"), HasSubstr("in use"));
}

TEST_F(DeviceLockTest, DoesNotOutliveItsProcessInAChild) {
  int pids[2];
  ASSERT_EQ(pipe(pids), 0);
  OtherProcess other([&] {
    if (!Keep("cuda:0")) return false;
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      while (true) pause();
    }
    return write(pids[1], &child, sizeof child) == sizeof child;
  });
  pid_t child = 0;
  ASSERT_EQ(read(pids[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  other.End();
  EXPECT_EQ(kill(child, 0), 0);
  EXPECT_TRUE(Take("cuda:0").ok());
  kill(child, SIGKILL);
  close(pids[0]);
  close(pids[1]);
}

TEST_F(DeviceLockTest, AnIdWithSlashesStaysInTheDirectory) {
  ASSERT_TRUE(Take("../../x").ok());
  EXPECT_TRUE(std::filesystem::exists(locks() + "/______x.lock"));
}

TEST_F(DeviceLockTest, FollowsNoLinkToAFile) {
  const std::string victim = directory_.path() + "/victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_directories(locks());
  std::filesystem::create_symlink(victim, locks() + "/cuda_0.lock");
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("cuda_0.lock is a symbolic link"));
  EXPECT_EQ(std::filesystem::file_size(victim), 8u);
}

TEST_F(DeviceLockTest, FollowsNoLinkToADirectory) {
  std::filesystem::create_directories(directory_.path() + "/a/elsewhere");
  std::filesystem::create_symlink(directory_.path() + "/a/elsewhere", locks());
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("is a symbolic link"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path() + "/a/elsewhere"));
}

TEST_F(DeviceLockTest, IsNotEverybodysToBlock) {
  std::filesystem::create_directories(locks());
  ASSERT_EQ(chmod(locks().c_str(), 01777), 0);
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("may be written to by every user"));
}

TEST_F(DeviceLockTest, IsNotAnotherUsersToBlock) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a directory away";
  std::filesystem::create_directories(locks());
  ASSERT_EQ(chown(locks().c_str(), 65534, 65534), 0);
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("belongs to user 65534; it must belong to user 0"));
}

TEST_F(DeviceLockTest, MakesADirectoryThatIsSafeWhateverTheUmask) {
  const mode_t before = umask(0);
  const bool taken = Take("cuda:0").ok();
  umask(before);
  EXPECT_TRUE(taken);
  using std::filesystem::perms;
  for (const std::string& made : {directory_.path() + "/a", locks()}) {
    EXPECT_EQ(std::filesystem::status(made).permissions() & perms::others_write, perms::none) << made;
  }
}

TEST(DeviceLock, NeedsADirectory) {
  EXPECT_TRUE(absl::IsInvalidArgument(DeviceLock::Take("", attune::v1::Device()).status()));
  EXPECT_THAT(std::string(DeviceLock::Take("/proc/none", attune::v1::Device()).status().message()),
              HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace attune::worker
