#include "server/catalog/fleet.h"

#include <memory>

#include "gtest/gtest.h"
#include "server/catalog/host.h"

namespace attune::catalog {
namespace {

v1::Device Card(const std::string& id, const std::string& model, const std::string& fingerprint) {
  v1::Device device;
  device.set_id(id);
  device.set_uuid("GPU-" + fingerprint + id);
  device.set_model(model);
  device.set_fingerprint(fingerprint);
  device.set_backend(v1::BACKEND_CUDA);
  return device;
}

v1::Host HostWith(const std::string& name, const std::vector<v1::Device>& devices,
                  v1::Host::State state = v1::Host::STATE_LIVE) {
  v1::Host host;
  host.set_name("hosts/" + name);
  host.set_state(state);
  *host.mutable_devices() = {devices.begin(), devices.end()};
  return host;
}

const v1::Device kL4 = Card("cuda:0", "NVIDIA L4", "11112222");
const v1::Device kH200 = Card("cuda:1", "NVIDIA H200", "33334444");

TEST(Fleet, HasTheClassesOfLiveHosts) {
  Fleet fleet;
  fleet.Set({HostWith("a", {kL4, Card("cuda:1", "NVIDIA L4", "11112222")}), HostWith("b", {kH200, kL4}),
             HostWith("c", {Card("cuda:0", "NVIDIA A100", "5555")}, v1::Host::STATE_LOST)});
  EXPECT_EQ(fleet.Names(), "h200 (hosts/b), l4 (hosts/a, hosts/b)");
  ASSERT_NE(fleet.FindClass("l4"), nullptr);
  EXPECT_EQ(fleet.FindClass("l4"), fleet.FindClass("11112222"));
  EXPECT_EQ(fleet.FindClass("l4")->id(), "l4") << "it stands for no card";
  EXPECT_EQ(fleet.FindClass("l4")->uuid(), "");
  EXPECT_EQ(fleet.FindClass("cuda:0"), nullptr);
}

TEST(Fleet, ClassesOfHostsThatAreAwayAreKnownBehindThoseOfLiveOnes) {
  Fleet fleet;
  fleet.Set({HostWith("a", {Card("cuda:0", "NVIDIA L4", "99998888")}, v1::Host::STATE_LOST), HostWith("b", {kL4}),
             HostWith("c", {kH200}, v1::Host::STATE_STOPPED)});
  EXPECT_EQ(fleet.Names(), "l4 (hosts/b)");
  EXPECT_EQ(fleet.FindClass("l4")->fingerprint(), kL4.fingerprint());
  ASSERT_NE(fleet.FindClass("99998888"), nullptr);
  EXPECT_EQ(fleet.FindClass("99998888")->id(), "l4-9999");
  ASSERT_NE(fleet.FindClass("h200"), nullptr) << "a daemon that starts meanwhile answers for it";
  EXPECT_FALSE(fleet.FindCard("hosts/c/devices/cuda:1").has_value());
}

TEST(Fleet, ANameIsAClassOfItWhereItIsNoCardHere) {
  Host host;
  host.devices = {kL4};
  host.devices.front().set_class_alias("ada");  // as this host alone calls it
  EXPECT_EQ(FleetClassNamed(host, "ada"), nullptr) << "there is no fleet";
  host.fleet = std::make_shared<Fleet>();
  host.fleet->Set({HostWith("a", {kL4}), HostWith("b", {kH200})});
  EXPECT_EQ(FleetClassNamed(host, "ada"), host.fleet->FindClass(kL4.fingerprint()));
  EXPECT_EQ(FleetClassNamed(host, "h200"), host.fleet->FindClass(kH200.fingerprint())) << "of another host";
  EXPECT_EQ(FleetClassNamed(host, "cuda:0"), nullptr) << "a card";
  EXPECT_EQ(FleetClassNamed(host, "a100"), nullptr);
}

TEST(Fleet, AClassThatIsGoneIsStillKnownAndListedNoLonger) {
  Fleet fleet;
  fleet.Set({HostWith("a", {kL4})});
  const v1::Device* const l4 = fleet.FindClass("l4");
  fleet.Set({});
  EXPECT_EQ(fleet.Names(), "");
  EXPECT_EQ(fleet.FindClass("l4"), l4) << "answers for it are given as before";
  fleet.Set({HostWith("b", {kL4})});
  EXPECT_EQ(fleet.Known().size(), 1) << "it is no new class";
  fleet.Set({HostWith("b", {kL4, kH200})});
  EXPECT_EQ(fleet.Known().size(), 2);
}

TEST(Fleet, ASecondClassOfAnAliasIsToldApart) {
  Fleet fleet;
  fleet.Set({HostWith("a", {kL4})});
  fleet.Set({HostWith("a", {kL4}), HostWith("b", {Card("cuda:0", "NVIDIA L4", "99998888")})});
  EXPECT_EQ(fleet.FindClass("l4")->fingerprint(), "11112222");
  EXPECT_EQ(fleet.FindClass("l4-9999")->fingerprint(), "99998888");
}

TEST(Fleet, FindsCardsByHostAndByUuid) {
  Fleet fleet;
  fleet.Set({HostWith("a", {kL4}), HostWith("b", {kH200})});
  EXPECT_EQ(fleet.FindCard("hosts/b/devices/cuda:1")->device.model(), "NVIDIA H200");
  EXPECT_EQ(fleet.FindCard(kL4.uuid())->host, "hosts/a");
  for (const char* name : {"", "hosts/a/devices/cuda:1", "cuda:0", "l4"}) {
    EXPECT_FALSE(fleet.FindCard(name).has_value()) << name;
  }
}

TEST(Fleet, NamesCardsByUuidAndThoseWithoutOneByTheirIds) {
  Fleet fleet;
  v1::Device plain = kL4;
  plain.clear_uuid();
  fleet.Set({HostWith("a", {kL4, kH200}), HostWith("b", {plain}), HostWith("c", {plain})});
  using Names = std::vector<std::string>;
  EXPECT_EQ(fleet.NamesOf({"cuda:7", kL4.uuid()}, kL4.fingerprint()), Names{"hosts/a/devices/cuda:0"});
  EXPECT_EQ(fleet.NamesOf({"cuda:0", ""}, kL4.fingerprint()).size(), 3) << "any of them may be it";
  EXPECT_EQ(fleet.NamesOf({"cuda:0", "GPU-gone"}, kL4.fingerprint()), Names());
  EXPECT_EQ(fleet.NamesOf({"cuda:0", kL4.uuid()}, kH200.fingerprint()), Names()) << "of another class";
  fleet.Set({HostWith("b", {kL4})});
  EXPECT_EQ(fleet.NamesOf({"cuda:0", kL4.uuid()}, kL4.fingerprint()), Names{"hosts/b/devices/cuda:0"});
}

TEST(Fleet, KnowsWhoseACardIsThatIsAway) {
  Fleet fleet;
  fleet.Set({HostWith("a", {kL4}, v1::Host::STATE_LOST), HostWith("b", {kH200})});
  EXPECT_EQ(fleet.HostAway("hosts/a/devices/cuda:0")->name(), "hosts/a");
  EXPECT_EQ(fleet.HostAway(kL4.uuid())->state(), v1::Host::STATE_LOST);
  for (const char* name : {"", "hosts/b/devices/cuda:1", "cuda:0"}) EXPECT_FALSE(fleet.HostAway(name)) << name;
}

TEST(Fleet, HasTheCardsOfAClassThatTakeWork) {
  Fleet fleet;
  v1::Host drains = HostWith("c", {kL4});
  drains.set_draining(true);
  fleet.Set({HostWith("a", {kL4, kH200}), HostWith("b", {kL4}), drains, HostWith("d", {kL4}, v1::Host::STATE_LOST)});
  std::vector<std::string> names;
  for (const FleetCard& card : fleet.CardsOf(kL4.fingerprint())) names.push_back(CardName(card.host, card.device.id()));
  EXPECT_EQ(names, (std::vector<std::string>{"hosts/a/devices/cuda:0", "hosts/b/devices/cuda:0"}));
}

}  // namespace
}  // namespace attune::catalog
