#include "server/daemon/host_beat.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "server/base/deadline.h"
#include "server/store/hosts_in_memory.h"

namespace attune {
namespace {

class HostBeatTest : public testing::Test {
 protected:
  static v1::Host Host() {
    v1::Host host;
    host.set_name("hosts/a");
    return host;
  }

  std::unique_ptr<HostBeat> Start() {
    auto beat = HostBeat::Start(
        hosts_, Host(),
        [this](const std::vector<v1::Host>& told) {
          const std::lock_guard<std::mutex> lock(mutex_);
          told_ = told;
          ++beats_;
          beaten_.notify_all();
        },
        absl::Milliseconds(1));
    EXPECT_TRUE(beat.ok()) << beat.status();
    return *std::move(beat);
  }

  std::vector<v1::Host> Told() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

  // After one that began later than this call.
  void AwaitBeat() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int before = beats_;
    ASSERT_TRUE(beaten_.wait_until(lock, After(absl::Seconds(60)), [&] { return beats_ >= before + 2; }));
  }

  std::atomic<int64_t> seconds_ = 1'800'000'000;
  store::HostsInMemory hosts_{[this] { return absl::FromUnixSeconds(seconds_); }};
  std::mutex mutex_;
  std::condition_variable beaten_;
  std::vector<v1::Host> told_;
  int beats_ = 0;
};

TEST_F(HostBeatTest, LivesUntilItEnds) {
  auto beat = Start();
  AwaitBeat();
  ASSERT_EQ(Told().size(), 1);
  EXPECT_EQ(Told()[0].state(), v1::Host::STATE_LIVE);
  beat.reset();
  EXPECT_EQ(hosts_.List()->at(0).state(), v1::Host::STATE_STOPPED);
}

TEST_F(HostBeatTest, DrainsWhenItIsToldSo) {
  const auto beat = Start();
  EXPECT_FALSE(beat->draining());
  ASSERT_TRUE(hosts_.SetDraining("hosts/a", true).ok());
  AwaitBeat();
  EXPECT_TRUE(beat->draining());
}

TEST_F(HostBeatTest, RegistersAgainWhenItWasForgotten) {
  const auto beat = Start();
  ASSERT_TRUE(hosts_.SetDraining("hosts/a", true).ok());
  AwaitBeat();
  // It is LOST for as long as there is from here to its next beat.
  const auto until = After(absl::Seconds(60));
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    seconds_ += absl::ToInt64Seconds(store::kHostTtl);
  } while (!hosts_.Forget("hosts/a").ok());
  AwaitBeat();
  ASSERT_EQ(hosts_.List()->size(), 1);
  EXPECT_FALSE(beat->draining());
}

TEST_F(HostBeatTest, TakesNoWorkOnceAnotherHasItsName) {
  const auto beat = Start();
  ASSERT_TRUE(hosts_.Register(Host(), 1).ok());
  const auto until = After(absl::Seconds(60));
  while (!beat->draining() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(beat->draining());
  EXPECT_EQ(hosts_.List()->at(0).state(), v1::Host::STATE_LIVE);
}

}  // namespace
}  // namespace attune
