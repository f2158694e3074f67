#include "server/daemon/protobuf_log.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/wrappers.pb.h"
#include "gtest/gtest.h"
#include "server/base/testing/logged.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProtobufLog, IsTheDaemons) {
  RouteProtobufLog();
  const std::string log = Logged([] { EXPECT_FALSE(google::protobuf::StringValue().ParseFromString("\x0a\x01\xff")); });
  google::protobuf::SetLogHandler(nullptr);
  EXPECT_THAT(log, HasSubstr("Z error protobuf message=\""));
  EXPECT_THAT(log, HasSubstr("invalid UTF-8"));
  EXPECT_THAT(log, Not(HasSubstr("[libprotobuf")));
}

}  // namespace
}  // namespace attune
