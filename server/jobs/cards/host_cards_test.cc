#include "server/jobs/cards/host_cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/catalog/testing/fake_host.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Device Card(const std::string& id, const std::string& fingerprint, const std::string& alias) {
  v1::Device device = catalog::FakeDevice();
  device.set_id(id);
  device.set_uuid("GPU-" + id);
  device.set_fingerprint(fingerprint);
  device.set_class_alias(alias);
  return device;
}

// Two cards of a class, a third of it without a worker, and one of another class between them.
class HostCardsTest : public ::testing::Test {
 protected:
  HostCardsTest() { host_.devices = {kFirst, kOther, kSecond, kWithout}; }

  std::vector<std::string> Slots(const std::string& names, const std::map<std::string, size_t>& loads = {}) {
    const auto slots = cards_.SlotsFor(names, [&](const std::string& card) {
      const auto it = loads.find(card);
      return it == loads.end() ? size_t{0} : it->second;
    });
    EXPECT_TRUE(slots.ok()) << slots.status();
    std::vector<std::string> ids;
    for (const trials::DeviceSlot* slot : slots.value_or(std::vector<trials::DeviceSlot*>())) {
      ids.push_back(slot->device().id());
    }
    return ids;
  }

  const v1::Device kFirst = Card("cuda:0", "an L4", "l4");
  const v1::Device kOther = Card("cuda:1", "an H200", "h200");
  const v1::Device kSecond = Card("cuda:2", "an L4", "l4");
  const v1::Device kWithout = Card("cuda:3", "an L4", "l4");
  catalog::Host host_;
  supervisor::FakeDeviceWorker first_{kFirst};
  supervisor::FakeDeviceWorker other_{kOther};
  supervisor::FakeDeviceWorker second_{kSecond};
  HostCards cards_{
      host_, {{"cuda:0", &first_}, {"cuda:1", &other_}, {"cuda:2", &second_}}, absl::InfiniteDuration(), SteadyNow};
};

TEST_F(HostCardsTest, SlotsAreOfWhatIsNamedThoseWithTheLowerLoadFirst) {
  EXPECT_THAT(Slots("cuda:1"), ElementsAre("cuda:1"));
  EXPECT_THAT(Slots("l4"), ElementsAre("cuda:0", "cuda:2")) << "none has a job: in the host's order";
  EXPECT_THAT(Slots("l4", {{"cuda:0", 2}, {"cuda:2", 1}}), ElementsAre("cuda:2", "cuda:0"));
  EXPECT_THAT(Slots("cuda:2,cuda:1"), ElementsAre("cuda:1", "cuda:2"));
}

TEST_F(HostCardsTest, AMistakenNameIsToldWhatThereIs) {
  const auto slots = cards_.SlotsFor("cuda:7", [](const std::string&) { return size_t{0}; });
  EXPECT_EQ(slots.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(slots.status().message(),
            "device_id is 'cuda:7'; this host has cuda:0 (l4), cuda:1 (h200), cuda:2 (l4), cuda:3 (l4)");
}

TEST_F(HostCardsTest, CardsOfSlotsAreInTheHostsOrder) {
  const std::vector<const v1::Device*> cards = cards_.CardsOf({&cards_.At("cuda:2"), &cards_.At("cuda:0")});
  EXPECT_THAT(cards, ElementsAre(&host_.devices[0], &host_.devices[2]));
}

TEST_F(HostCardsTest, AClassIsItsCardsThatAreFreeOrAllWhereNoneIs) {
  EXPECT_EQ(cards_.ListOfClass("an L4"), "cuda:0,cuda:2");
  EXPECT_EQ(cards_.ListOfClass("an A100"), "");
  first_.set_available(absl::FailedPreconditionError("cuda:0 is held"));
  EXPECT_EQ(cards_.ListOfClass("an L4"), "cuda:2");
  second_.set_available(absl::FailedPreconditionError("cuda:2 is held"));
  EXPECT_EQ(cards_.ListOfClass("an L4"), "cuda:0,cuda:2");
}

TEST_F(HostCardsTest, AClassIsToBeHadWhileOneOfItsCardsIs) {
  first_.set_available(absl::FailedPreconditionError("cuda:0 is held"));
  EXPECT_EQ(cards_.CanHave("an L4"), absl::OkStatus()) << "cuda:2 is free";
  second_.set_available(absl::FailedPreconditionError("cuda:2 is held"));
  EXPECT_EQ(cards_.CanHave("an L4").message(), "cuda:2 is held") << "cuda:1 is free, and of another class";
  EXPECT_EQ(cards_.CanHave("an A100"), absl::OkStatus());
}

TEST_F(HostCardsTest, SistersAreTheOthersOfItsClassThatHaveAWorker) {
  EXPECT_THAT(cards_.SistersOf("cuda:0"), ElementsAre("cuda:2"));
  EXPECT_THAT(cards_.SistersOf("cuda:2"), ElementsAre("cuda:0"));
  EXPECT_THAT(cards_.SistersOf("cuda:1"), IsEmpty());
}

TEST_F(HostCardsTest, ACardsClassIsKnownByItsAlias) {
  EXPECT_EQ(cards_.ClassAliasOf("cuda:1"), "h200");
  EXPECT_EQ(cards_.ClassAliasOf("cuda:7"), "");
}

}  // namespace
}  // namespace attune::jobs
