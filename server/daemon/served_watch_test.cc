#include "server/daemon/served_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/base/clock.h"
#include "server/base/deadline.h"
#include "server/store/testing/fake_store.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Counts how often it is read again, and fails the first times.
class CountedResults : public catalog::Results {
 public:
  absl::Status Reload() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++reloads_;
    reloaded_.notify_all();
    return reloads_ <= fails_ ? absl::UnavailableError("the database is away") : absl::OkStatus();
  }

  void FailFirst(int times) { fails_ = times; }
  bool AwaitReloads(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return reloaded_.wait_until(lock, After(absl::Minutes(1)), [&] { return reloads_ >= count; });
  }
  int reloads() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reloads_;
  }

  // How many keys at once.
  std::vector<size_t> reread() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reread_;
  }

  using catalog::Results::GetBest;
  absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest&, std::string*) override { return Unused(); }
  bool IsTuned(const catalog::ResultKey&) const override { return false; }
  std::vector<space::Variant> Nearby(const Problem&, const v1::Device&, v1::Policy, size_t) const override {
    return {};
  }
  uint64_t version() const override { return 0; }
  absl::StatusOr<std::optional<v1::Incumbent>> Served(const catalog::ResultKey&) override { return Unused(); }
  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent&, const std::optional<v1::Incumbent>&,
                                        const store::JobWrite&) override {
    return Unused();
  }
  absl::StatusOr<v1::Incumbent> RollBack(const catalog::ResultKey&, absl::string_view, absl::string_view) override {
    return Unused();
  }
  absl::StatusOr<v1::Incumbent> Unpin(const catalog::ResultKey&) override { return Unused(); }
  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline&) override { return Unused(); }
  void TrialsAdded(const catalog::ResultKey&) override {}
  void Reread(const std::vector<catalog::ResultKey>& keys) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    reread_.push_back(keys.size());
  }

 private:
  static absl::Status Unused() { return absl::UnimplementedError("no watch asks for it"); }

  std::mutex mutex_;
  std::condition_variable reloaded_;
  int fails_ = 0;
  int reloads_ = 0;
  std::vector<size_t> reread_;
};

class ServedWatchTest : public testing::Test {
 protected:
  // A live host with a card of the class.
  static v1::Host HostWith(const std::string& device_class) {
    v1::Host host;
    host.set_name("hosts/" + device_class);
    host.set_state(v1::Host::STATE_LIVE);
    host.add_devices()->set_fingerprint(device_class);
    return host;
  }

  store::FakeStore store_;
  catalog::Fleet fleet_;
  CountedResults results_;
};

TEST_F(ServedWatchTest, HasResultsReadAgainForANewClassUntilThatSucceeds) {
  fleet_.Set({HostWith("l4")});
  results_.FailFirst(2);
  std::optional<ServedWatch> watch;
  watch.emplace(store_, results_, fleet_, ServedWatch::Since{SteadyNow(), fleet_.Known().size()},
                absl::Milliseconds(1));
  fleet_.Set({HostWith("l4"), HostWith("h200")});
  EXPECT_TRUE(results_.AwaitReloads(3));
  watch.reset();
  EXPECT_EQ(results_.reloads(), 3);
}

// Another process promotes two things, once.
class ChangedStore : public store::FakeStore {
 public:
  std::atomic<bool> changed = true;

  absl::StatusOr<std::vector<store::ServedChange>> ChangesOfServed(absl::Duration) override {
    if (!changed) return std::vector<store::ServedChange>();
    return std::vector<store::ServedChange>{{"b1.h1.q32.d32.f16", "l4", v1::POLICY_HOT, absl::FromUnixSeconds(1)},
                                            {"b1.h1.q64.d32.f16", "l4", v1::POLICY_HOT, absl::FromUnixSeconds(2)}};
  }
};

TEST_F(ServedWatchTest, LooksAtOnceWhenItIsAsked) {
  ChangedStore store;
  store.changed = false;
  ServedWatch watch(store, results_, fleet_, ServedWatch::Since{SteadyNow(), 0}, absl::Hours(1));
  watch.LookNow();
  EXPECT_THAT(results_.reread(), IsEmpty());
  store.changed = true;
  watch.LookNow();
  EXPECT_THAT(results_.reread(), ElementsAre(2));
}

TEST_F(ServedWatchTest, TellsOfChangesOnceAndTogether) {
  ChangedStore store;
  std::atomic<int> told = 0;
  {
    ServedWatch watch(store, results_, fleet_, ServedWatch::Since{SteadyNow(), 0}, absl::Milliseconds(1),
                      [&] { ++told; });
    fleet_.Set({HostWith("l4")});
    EXPECT_TRUE(results_.AwaitReloads(1));  // a later look than the one that saw the change
  }
  EXPECT_EQ(told, 2) << "of the changes, and of the class";
  EXPECT_THAT(results_.reread(), ElementsAre(2)) << "both at once";
}

TEST_F(ServedWatchTest, KnowsWhichClassesTheResultsWereReadWith) {
  fleet_.Set({HostWith("l4")});
  std::optional<ServedWatch> watch;
  watch.emplace(store_, results_, fleet_, ServedWatch::Since{SteadyNow(), 0}, absl::Milliseconds(1));
  EXPECT_TRUE(results_.AwaitReloads(1)) << "it came between the reading and the watch";
}

}  // namespace
}  // namespace attune
