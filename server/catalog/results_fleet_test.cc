// Answers for classes of cards that other hosts have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/base/device_profile.h"
#include "server/catalog/class_alias.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/results_fixture.h"
#include "server/space/family.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;

// Near to what was tuned before the server was shipped.
constexpr char kNearShipped[] = "b4.h32.kvh4.q1.kv3000.d64.bf16";

class FleetResultsTest : public ResultsTest {
 protected:
  FleetResultsTest() {
    Host gateway = FakeHost();
    gateway.devices.clear();
    gateway.families = *space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    gateway.fleet = fleet_;
    results_ = Open(std::move(gateway));
  }

  // As its heartbeat tells the gateway of it.
  void HearOf(const std::string& host_name, v1::Device device) {
    std::vector<v1::Device> devices = {std::move(device)};
    NameClasses(devices);
    v1::Host& host = known_.emplace_back();
    host.set_name(host_name);
    host.set_state(v1::Host::STATE_LIVE);
    *host.mutable_devices() = {devices.begin(), devices.end()};
    fleet_->Set(known_);
  }

  static v1::GetBestRequest AskFor(const std::string& device) {
    v1::GetBestRequest request = Ask(kNearShipped);
    request.set_device_id(device);
    return request;
  }

  std::shared_ptr<Fleet> fleet_ = std::make_shared<Fleet>();
  std::vector<v1::Host> known_;
  std::unique_ptr<Results> results_;
};

TEST_F(FleetResultsTest, WhatWasShippedForAClassAnswersOnceTheClassIsKnown) {
  HearOf("hosts/a", *DeviceProfile("h100"));
  EXPECT_EQ(results_->GetBest(AskFor("h100"))->provenance(), v1::PROVENANCE_HEURISTIC);
  const uint64_t before = results_->version();
  ASSERT_TRUE(results_->Reload().ok());
  EXPECT_GT(results_->version(), before);
  const auto best = results_->GetBest(AskFor("h100"));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_THAT(best->provenance_detail(), HasSubstr("before this server was shipped"));
}

TEST_F(FleetResultsTest, WhatWasShippedAnswersForAClassWhoseHostsAreAway) {
  HearOf("hosts/a", *DeviceProfile("h100"));
  known_.clear();
  HearOf("hosts/b", *DeviceProfile("l4"));
  ASSERT_TRUE(results_->Reload().ok());
  EXPECT_EQ(results_->GetBest(AskFor("h100"))->provenance(), v1::PROVENANCE_NEAREST);
}

TEST_F(FleetResultsTest, SaysWhichHostsCardTimedIt) {
  TuneOne();
  Host gateway = Today();
  const v1::Device card = gateway.devices.front();
  gateway.devices.clear();
  gateway.fleet = fleet_;
  HearOf("hosts/a", card);
  const auto results = Open(std::move(gateway));
  const auto detail = [&] {
    v1::GetBestRequest request = Ask(kProblem);
    request.set_device_id(fleet_->Known().front()->id());
    const auto best = results->GetBest(request);
    EXPECT_TRUE(best.ok()) << best.status();
    EXPECT_EQ(best->provenance(), v1::PROVENANCE_EXACT);
    return best->provenance_detail();
  };
  EXPECT_EQ(detail(), absl::StrCat("timed on hosts/a/devices/", card.id()));
  HearOf("hosts/b", card);
  EXPECT_EQ(detail(), absl::StrCat("timed on ", card.id(), " of another host")) << "of which cannot be told";
  known_.clear();
  fleet_->Set(known_);
  EXPECT_EQ(detail(), absl::StrCat("timed on another ", card.model(), ", which no live host has"));
}

TEST_F(FleetResultsTest, AnswersWhileItIsReadAgain) {
  HearOf("hosts/a", *DeviceProfile("h100"));
  ASSERT_TRUE(results_->Reload().ok());
  std::atomic<bool> asked = false;
  std::thread reloading([&] {
    while (!asked) EXPECT_TRUE(results_->Reload().ok());
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(results_->GetBest(AskFor("h100"))->provenance(), v1::PROVENANCE_NEAREST);
  asked = true;
  reloading.join();
}

}  // namespace
}  // namespace attune::catalog
