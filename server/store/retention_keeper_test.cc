#include "server/store/retention_keeper.h"

#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"
#include "server/store/testing/fake_store.h"

namespace attune::store {
namespace {

// Notes what it is asked to retain, and holds the pass until it is to stop when told to.
class NotingStore : public FakeStore {
 public:
  absl::StatusOr<Retained> Retain(const Retention& retention, const std::function<bool()>& stopped) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++passes_;
    last_ = retention;
    changed_.notify_all();
    while (hold_ && !stopped()) changed_.wait_for(lock, std::chrono::milliseconds(1));
    return Retained();
  }

  void Hold() {
    const std::lock_guard<std::mutex> lock(mutex_);
    hold_ = true;
  }
  bool AwaitPasses(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return passes_ >= count; });
  }
  int passes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return passes_;
  }
  Retention last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hold_ = false;
  int passes_ = 0;
  Retention last_;
};

Retention SomeLimit() {
  Retention limits;
  limits.database_bytes = 1 << 20;
  return limits;
}

TEST(RetentionKeeper, RetainsAtOnceAndAgain) {
  NotingStore store;
  const absl::Time before = absl::Now();
  const RetentionKeeper keeper(&store, SomeLimit(), absl::Milliseconds(1));
  ASSERT_TRUE(store.AwaitPasses(3));
  EXPECT_EQ(store.last().database_bytes, 1 << 20);
  EXPECT_GE(store.last().now, before);
}

TEST(RetentionKeeper, DoesNothingWithoutLimits) {
  NotingStore store;
  { const RetentionKeeper keeper(&store, Retention(), absl::Milliseconds(1)); }
  EXPECT_EQ(store.passes(), 0);
}

TEST(RetentionKeeper, EndsAPassThatIsRunning) {
  NotingStore store;
  store.Hold();
  {
    const RetentionKeeper keeper(&store, SomeLimit());
    ASSERT_TRUE(store.AwaitPasses(1));
  }
  EXPECT_EQ(store.passes(), 1);
}

}  // namespace
}  // namespace attune::store
