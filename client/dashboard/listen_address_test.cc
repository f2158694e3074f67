#include "client/dashboard/listen_address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParseListenAddress, KnowsWhatOnlyThisHostReaches) {
  for (const char* text : {"127.0.0.1:7412", "127.1.2.3:1", "localhost:0", "[::1]:7412"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_TRUE(address->loopback) << text;
    EXPECT_FALSE(address->any) << text;
  }
  for (const char* text : {"10.0.0.1:7412", "[fe80::1]:7412", "126.255.255.255:1", "128.0.0.1:1"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_FALSE(address->loopback) << text;
  }
  for (const char* text : {"0.0.0.0:7412", "[::]:7412"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_FALSE(address->loopback) << text;
    EXPECT_TRUE(address->any) << text;
  }
}

TEST(ParseListenAddress, TakesAddressAndPortApart) {
  EXPECT_EQ(ParseListenAddress("localhost:80")->ip, "127.0.0.1");
  EXPECT_EQ(ParseListenAddress("[::1]:7412")->ip, "::1");
  EXPECT_EQ(ParseListenAddress("[::1]:7412")->port, 7412);
  EXPECT_EQ(HostAndPort("::1", 7412), "[::1]:7412");
  EXPECT_EQ(HostAndPort("127.0.0.1", 80), "127.0.0.1:80");
}

TEST(ParseListenAddress, ReadsNothingBehindANul) {
  for (const absl::string_view text :
       {absl::string_view("0.0.0.0\0:1:7412", 14), absl::string_view("[::1\0]:7412", 11)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseListenAddress(text).status()));
  }
}

TEST(ParseListenAddress, NamesTheFlagTheValueAndWhatIsAllowed) {
  for (const char* text : {"", "7412", ":7412", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                           "127.0.0.1:-1", "127.0.0.1:+1", "::1:7412", "gpu7:7412", "127.1:7412", "[127.0.0.1]:7412",
                           "[::ffff:0.0.0.0]:7412", "[::ffff:10.0.0.1]:7412"}) {
    const auto address = ParseListenAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_THAT(std::string(address.status().message()),
                AllOf(HasSubstr("--listen is '" + std::string(text) + "'"), HasSubstr("allowed: ADDRESS:PORT")));
  }
}

}  // namespace
}  // namespace attune::dashboard
