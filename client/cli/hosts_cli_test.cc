// attune hosts.
#include "client/cli/testing/fake_world.h"
#include "client/testing/fake_fleet.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A gateway's command line: what the fleet's hosts have is there by their names.
class GatewayCliTest : public CliTest {
 protected:
  GatewayCliTest() {
    fake.HasNoDevice();
    server = std::make_unique<attune::testing::RunningServer>(&fake, "127.0.0.1:0", &fleet_);
    variables["ATTUNE_SERVER"] = server->address();
    width = 160;
  }
  ~GatewayCliTest() override { server.reset(); }

  attune::testing::FakeFleet fleet_;
};

TEST_F(GatewayCliTest, DevicesAreTheClassesOfLiveHosts) {
  ASSERT_EQ(Run({"devices"}), 0) << err;
  EXPECT_THAT(out, AllOf(HasSubstr("No device here"), HasSubstr("hosts/a/devices/cuda:0, hosts/a/devices/cuda:1")));
}

TEST_F(GatewayCliTest, AListMayBeOfAClassOrACardOfAHost) {
  for (const char* device : {"l4", "GPU-2", "hosts/a/devices/cuda:0"}) {
    EXPECT_EQ(Run({"trials", "--device", device, "--family", "attention_wmma"}), 0) << device << ": " << err;
  }
  EXPECT_EQ(Run({"history", "b1.h1.q1.d64.f16", "--device", "a100"}), 3);
  EXPECT_THAT(err, HasSubstr("available devices: hosts/a/devices/cuda:0 (l4), hosts/a/devices/cuda:1 (l4)"));
}

TEST_F(GatewayCliTest, HistorySaysWhoseCardTimed) {
  fake.TimedBy("GPU-2");
  ASSERT_EQ(Run({"history", problem}), 0) << err;
  EXPECT_THAT(out, HasSubstr("hosts/a/devices/cuda:1"));
  fake.TimedBy("GPU-gone");
  ASSERT_EQ(Run({"history", problem}), 0) << err;
  EXPECT_THAT(out, HasSubstr("cuda:0"));
}

class HostsCliTest : public CliTest {
 protected:
  HostsCliTest() {
    server = std::make_unique<attune::testing::RunningServer>(&fleet_);
    variables["ATTUNE_SERVER"] = server->address();
  }
  ~HostsCliTest() override { server.reset(); }

  attune::testing::FakeFleet fleet_;
};

TEST_F(HostsCliTest, AreListedWithWhatTheyHaveAndWorkOn) {
  width = 160;
  ASSERT_EQ(Run({"hosts"}), 0) << err;
  EXPECT_THAT(
      out, AllOf(HasSubstr("hosts/a  LIVE"), HasSubstr("2 s ago"), HasSubstr("cuda:0, cuda:1 (l4)"),
                 HasSubstr("tune b2.h8.q512.d64.f16 on l4"), HasSubstr("hosts/b  LOST"), HasSubstr("none: a gateway")));
}

TEST_F(HostsCliTest, JsonHasEveryKey) {
  ASSERT_EQ(Run({"hosts", "list", "--format=json"}), 0) << err;
  ASSERT_EQ(JsonLines().size(), 2);
  EXPECT_EQ(JsonLines()[0], Json::parse(R"({"type": "host", "host": "hosts/a", "state": "LIVE", "draining": false,
      "version": "1.0", "start_time": "2026-09-21T14:13:20Z", "heartbeat_time": "2026-09-21T14:15:00Z",
      "heartbeat_age_s": 2.0,
      "devices": [
        {"device": "cuda:0", "class": "l4", "model": "NVIDIA L4", "uuid": null, "driver": null, "fingerprint": "8f3a"},
        {"device": "cuda:1", "class": "l4", "model": "NVIDIA L4", "uuid": "GPU-2", "driver": null,
         "fingerprint": "8f3a"}],
      "operations": [{"operation": "operations/7", "title": "tune b2.h8.q512.d64.f16 on l4"}]})"));
}

TEST_F(HostsCliTest, AreDrainedUndrainedAndForgotten) {
  EXPECT_EQ(Run({"hosts", "drain", "a"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("hosts/a takes no more work"));
  EXPECT_EQ(Run({"hosts", "drain", "hosts/a", "--format=json"}), 0) << err;
  EXPECT_EQ(JsonLines()[0]["draining"], true);
  EXPECT_EQ(Run({"hosts", "undrain", "a"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("takes work from the queue again"));
  EXPECT_EQ(Run({"hosts", "forget", "b"}), 0) << err;
  EXPECT_EQ(out, "forgotten: hosts/b\n");
  EXPECT_NE(Run({"hosts", "forget", "a"}), 0);
  EXPECT_THAT(err, HasSubstr("hosts/a is alive"));
  EXPECT_EQ(Run({"hosts", "drain", "none"}), 3);
}

TEST_F(HostsCliTest, NeedTheHostThatIsMeantAndNoOther) {
  EXPECT_EQ(Run({"hosts", "drain"}), 2);
  EXPECT_EQ(Run({"hosts", "list", "a"}), 2);
  EXPECT_EQ(Run({"hosts", "stop", "a"}), 2);
}

}  // namespace
}  // namespace attune::cli
