#include "server/service/listen_address.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(text);
  EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
  return std::string(address.status().message());
}

TEST(ListenAddress, IsAHostAndAPort) {
  const absl::StatusOr<ListenAddress> address = ParseListenAddress("localhost:7411");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->host, "localhost");
  EXPECT_EQ(address->port, 7411);
  EXPECT_EQ(ParseListenAddress("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseListenAddress("0.0.0.0:65535")->port, 65535);
}

TEST(ListenAddress, IsAPath) {
  EXPECT_EQ(ParseListenAddress("unix:/run/attune/a:b.sock")->path, "/run/attune/a:b.sock");
  EXPECT_TRUE(ParseListenAddress("unix:/" + std::string(106, 'x')).ok());
  EXPECT_THAT(ErrorOf("unix:/" + std::string(107, 'x')),
              HasSubstr("has a path of 108 bytes; a Unix socket's is one of 1 to 107"));
  EXPECT_THAT(ErrorOf("unix:"), HasSubstr("has a path of 0 bytes"));
}

TEST(ListenAddress, IsNothingElse) {
  EXPECT_EQ(ErrorOf("foo"), "'foo' is not host:port or unix:/path");
  for (const char* text : {"", ":7499", "localhost", "localhost:", "localhost:http", "::1:7411", "dns:host:1",
                           "localhost:-1", "a b:1", "[::1]7411", "[]:1"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is not host:port or unix:/path")) << text;
  }
}

TEST(ListenAddress, HasAPortThatThereIs) {
  EXPECT_EQ(ErrorOf("localhost:99999"), "'localhost:99999' has a port that is not one of 0 to 65535");
  EXPECT_THAT(ErrorOf("localhost:4294967297"), HasSubstr("not one of 0 to 65535"));
}

TEST(ListenAddress, IsOfThisHostAloneOrNot) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "no.such.host.invalid"}) {
    EXPECT_TRUE(CheckReach(ListenAddress{"", host, 0}, host).ok()) << host;
  }
  EXPECT_TRUE(CheckReach(ListenAddress{"/run/attune/attuned.sock", "", 0}, "unix:/run/attune/attuned.sock").ok());
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_THAT(std::string(CheckReach(ListenAddress{"", host, 0}, host).message()),
                HasSubstr(absl::StrCat("'", host, "' can be reached from other hosts")));
  }
}

TEST(ListenAddress, IsQuotedInPart) { EXPECT_THAT(ErrorOf(std::string(5000, 'x')), SizeIs(testing::Lt(120u))); }

}  // namespace
}  // namespace attune::service
