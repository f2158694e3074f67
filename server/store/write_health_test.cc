#include "server/store/write_health.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/logged.h"

namespace attune::store {
namespace {

using ::testing::HasSubstr;

class WriteHealthTest : public ::testing::Test {
 protected:
  std::string LogOf(const absl::Status& status) {
    return Logged([&] { health_.Note(status); });
  }
  WriteHealth health_;
};

TEST_F(WriteHealthTest, SaysOnceThatTheDiskIsFullAndOnceThatItIsNot) {
  EXPECT_EQ(LogOf(absl::OkStatus()), "");
  EXPECT_THAT(LogOf(absl::ResourceExhaustedError("disk full: x")),
              HasSubstr("error disk full, the store cannot write error=\"disk full: x\""));
  EXPECT_EQ(LogOf(absl::ResourceExhaustedError("disk full: y")), "");
  EXPECT_THAT(LogOf(absl::OkStatus()), HasSubstr("info the store writes again"));
  EXPECT_EQ(LogOf(absl::OkStatus()), "");
}

TEST_F(WriteHealthTest, ARequestsOwnErrorIsNoTrouble) {
  EXPECT_EQ(LogOf(absl::AbortedError("somebody else promoted")), "");
  EXPECT_EQ(LogOf(absl::NotFoundError("no such trial")), "");
  EXPECT_EQ(LogOf(absl::OkStatus()), "");
}

}  // namespace
}  // namespace attune::store
