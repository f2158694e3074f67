#include "server/daemon/memory_trim.h"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t ResidentBytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A block in a hundred stays, so that no arena can shrink from its end.
TEST(MemoryTrimTest, GivesBackWhatLiesBetweenWhatIsInUse) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc keeps what is freed";
#endif
  constexpr size_t kBlock = 4096;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int64_t bytes = 0; bytes < 128 * kMiB; bytes += kBlock) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    std::memset(blocks.back().get(), 1, kBlock);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 100 != 0) blocks[i].reset();
  }
  const int64_t before = ResidentBytes();
  const MemoryTrim trim(absl::Milliseconds(1));
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (ResidentBytes() > before - 64 * kMiB && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_LT(ResidentBytes(), before - 64 * kMiB);
}

}  // namespace
}  // namespace attune
