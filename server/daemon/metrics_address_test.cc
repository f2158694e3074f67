#include "server/daemon/metrics_address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(MetricsAddress, OfAPortAloneIsThisHostsOwn) {
  const auto address = ParseMetricsAddress("9464", /*insecure=*/false);
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 9464);
}

TEST(MetricsAddress, OfANameIsItsAddress) {
  EXPECT_EQ(ParseMetricsAddress("localhost:0", false)->host, "127.0.0.1");
  EXPECT_EQ(ParseMetricsAddress("[::1]:9464", false)->host, "::1");
}

TEST(MetricsAddress, IsReachedFromOtherHostsOnlyWhenThatIsSaid) {
  for (const char* text : {"0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"}) {
    const auto refused = ParseMetricsAddress(text, false);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << text;
    EXPECT_THAT(refused.status().message(), HasSubstr("--metrics_insecure"));
    EXPECT_TRUE(ParseMetricsAddress(text, true).ok()) << text;
  }
}

TEST(MetricsAddress, ThatIsNoneIsRefused) {
  for (const char* text : {"", ":", "99999", "localhost", "unix:/tmp/x", "localhost:99999", "a b:1"}) {
    EXPECT_EQ(ParseMetricsAddress(text, false).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(ParseMetricsAddress("no-such-host.invalid:1", false).status().message(), HasSubstr("has no address"));
}

}  // namespace
}  // namespace attune
