// Limits are not raised again, so each test runs in a process of its own.
#include "server/worker/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace attune::worker {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

constexpr int64_t kTiB = int64_t{1} << 40;
constexpr Limits kSmall{4 * kTiB, kMiB, 64};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

bool Maps(int64_t bytes) {
  void* const memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED;
}

TEST(Limits, OfMemoryFilesAndDescriptorsHold) {
  EXPECT_EXIT(
      {
        bool right = Maps(kTiB) && LimitResources(kSmall).ok();
        right = right && (kSanitized || !Maps(4 * kTiB));
        int descriptors = 0;
        while (dup(STDERR_FILENO) >= 0) ++descriptors;
        right = right && descriptors < 64;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Limits, AFileThatGrowsTooLargeEndsTheProcess) {
  EXPECT_EXIT(
      {
        if (!LimitResources(kSmall).ok()) _exit(1);
        const int fd = open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR, 0600);
        if (fd < 0) raise(SIGXFSZ);  // a file system without such files
        const std::string block(64 << 10, 'x');
        for (int i = 0; i < 64; ++i) {
          if (write(fd, block.data(), block.size()) < 0) _exit(2);
        }
        _exit(3);
      },
      ::testing::KilledBySignal(SIGXFSZ), "");
}

TEST(Limits, NoneIsRaised) {
  EXPECT_EXIT(
      {
        rlimit low = {};
        low.rlim_cur = low.rlim_max = 16;
        bool right = setrlimit(RLIMIT_NOFILE, &low) == 0 && LimitResources(LimitsOfCompiler()).ok();
        rlimit now = {};
        right = right && getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 16 && now.rlim_max == 16;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Limits, TheOomKillerTakesAWorkerFirst) {
  EXPECT_EXIT(
      {
        const bool right = LimitResources(LimitsOfDevice()).ok();
        int score = 0;
        std::ifstream("/proc/self/oom_score_adj") >> score;
        _exit(right && score >= 500 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Capabilities, AreGoneForEver) {
  EXPECT_EXIT(
      {
        bool right = DropCapabilities().ok();
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);) {
          if (line.rfind("CapEff", 0) == 0 || line.rfind("CapPrm", 0) == 0 || line.rfind("CapAmb", 0) == 0) {
            right = right && line.find_first_not_of("0", line.find('\t') + 1) == std::string::npos;
          }
        }
        right = right && chroot("/") != 0 && setpriority(PRIO_PROCESS, 0, -1) != 0;
        // Twice is once.
        _exit(right && DropCapabilities().ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attune::worker
