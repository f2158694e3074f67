#include "server/daemon/edge/copy_keeper.h"

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/deadline.h"
#include "server/base/testing/logged.h"
#include "server/store/files.h"
#include "server/store/testing/fake_store.h"
#include "server/store/testing/test_directory.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHere[] = "host=db.example dbname=attune";

class CopyKeeperTest : public testing::Test {
 protected:
  // Answers of a store that may be away.
  class Store : public store::FakeStore {
   public:
    absl::StatusOr<store::Page<v1::Incumbent>> ListIncumbents(const store::IncumbentFilter& filter, int page_size,
                                                              absl::string_view token) override {
      ++asked;
      if (away) return absl::UnavailableError("away");
      return FakeStore::ListIncumbents(filter, page_size, token);
    }
    std::atomic<bool> away = false;
    std::atomic<int> asked = 0;
  };

  std::unique_ptr<const served::v1::Copy> Kept(const std::string& database = kHere) {
    return ReadKeptCopy(directory_.path(), database);
  }
  static void Await(const std::function<bool()>& condition) {
    for (const Deadline end = After(absl::Minutes(1)); !condition(); std::this_thread::yield()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
  }
  void Record() {
    v1::Baseline baseline;
    baseline.set_problem_text("b1.h1.q32.d32.f16");
    baseline.set_device_id("cuda:0");
    baseline.set_policy(v1::POLICY_HOT);
    baseline.set_contender("flash");
    baseline.set_median_us(50);
    ASSERT_TRUE(store_.RecordBaseline(baseline).ok());
  }

  static constexpr CopyKeeper::Pace kFast = {.least = absl::ZeroDuration(), .most = absl::Hours(1), .share = 0};

  const store::TestDirectory directory_;
  Store store_;
};

TEST_F(CopyKeeperTest, CopiesAtOnceAndAfterEachChange) {
  CopyKeeper keeper(store_, kHere, directory_.path(), kFast);
  Await([this] { return Kept() != nullptr; });
  EXPECT_EQ(Kept()->baselines_size(), 0);
  Record();
  keeper.Changed();
  Await([this] { return Kept()->baselines_size() == 1; });
}

TEST_F(CopyKeeperTest, NobodyElseReadsTheFile) {
  ASSERT_TRUE(store::ReplaceFile(CopyFileOf(directory_.path()), "of an earlier version").ok());
  const CopyKeeper keeper(store_, kHere, directory_.path(), kFast);
  Await([this] { return Kept() != nullptr; });
  struct stat info = {};
  ASSERT_EQ(stat(CopyFileOf(directory_.path()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(CopyKeeperTest, CopiesAfterAWhileEvenIfNothingHasChanged) {
  CopyKeeper keeper(store_, kHere, directory_.path(),
                    {.least = absl::ZeroDuration(), .most = absl::Milliseconds(1), .share = 0});
  Await([this] { return store_.asked > 3; });
}

TEST_F(CopyKeeperTest, WhatCannotBeCopiedLeavesTheCopyBeforeAndIsTriedAgain) {
  CopyKeeper keeper(store_, kHere, directory_.path(), kFast);
  Await([this] { return Kept() != nullptr; });
  store_.away = true;
  Record();
  const int asked = store_.asked;
  keeper.Changed();
  Await([&] { return store_.asked > asked + 1; });
  EXPECT_EQ(Kept()->baselines_size(), 0);
  store_.away = false;
  Await([this] { return Kept()->baselines_size() == 1; });
}

TEST_F(CopyKeeperTest, WithoutAFileThereIsNoCopyAndNothingToSay) {
  EXPECT_THAT(Logged([this] { EXPECT_EQ(Kept(), nullptr); }), IsEmpty());
}

TEST_F(CopyKeeperTest, AFileThatCannotBeUsedIsNamedAndNotUsed) {
  ASSERT_TRUE(store::ReplaceFile(CopyFileOf(directory_.path()), "no copy").ok());
  const std::string damaged = Logged([this] { EXPECT_EQ(Kept(), nullptr); });
  EXPECT_THAT(damaged, HasSubstr("the copy of what was served is not used"));
  EXPECT_THAT(damaged, HasSubstr("served.copy"));
  EXPECT_THAT(damaged, HasSubstr("is damaged"));
}

TEST_F(CopyKeeperTest, TheCopyOfAnotherDatabaseIsNotUsed) {
  {
    CopyKeeper keeper(store_, kHere, directory_.path(), kFast);
    Await([this] { return Kept() != nullptr; });
  }
  EXPECT_THAT(Logged([this] { EXPECT_EQ(Kept("host=other.example"), nullptr); }), HasSubstr("of another database"));
}

}  // namespace
}  // namespace attune
