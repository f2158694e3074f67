#include "server/daemon/edge/until_done.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/logged.h"
#include "server/store/postgresql/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Status kAway = store::postgresql::LostConnection("Connection refused", "PostgreSQL at db:5432");

TEST(TryUntilDoneTest, TriesUntilItSucceedsWithPausesThatGrowToFiveSeconds) {
  int attempts = 0;
  std::vector<absl::Duration> pauses;
  EXPECT_TRUE(TryUntilDone([&] { return ++attempts < 20 ? kAway : absl::OkStatus(); },
                           [&](absl::Duration time) {
                             pauses.push_back(time);
                             return true;
                           }));
  EXPECT_EQ(attempts, 20);
  ASSERT_EQ(pauses.size(), 19);
  EXPECT_LE(pauses.front(), absl::Milliseconds(500));
  EXPECT_GT(pauses.back(), absl::Milliseconds(2499));
  for (const absl::Duration pause : pauses) EXPECT_LE(pause, absl::Seconds(5));
}

TEST(TryUntilDoneTest, EndsWhenTheDaemonIsToEnd) {
  int pauses = 0;
  EXPECT_FALSE(TryUntilDone([] { return kAway; }, [&](absl::Duration) { return ++pauses < 3; }));
  EXPECT_EQ(pauses, 3);
}

TEST(TryUntilDoneTest, AnOutageIsNoErrorAndARefusalIsOneOnce) {
  const absl::Status refused =
      store::postgresql::NoConnection("connection to server failed: FATAL:  28P01: password authentication failed\n",
                                      false, {}, "PostgreSQL at db:5432");
  const auto logged = [](const absl::Status& failed) {
    return Logged([&] {
      int attempts = 0;
      TryUntilDone([&] { return ++attempts < 5 ? failed : absl::OkStatus(); }, [](absl::Duration) { return true; });
    });
  };
  EXPECT_THAT(logged(kAway), Not(HasSubstr("error")));
  const std::string lines = logged(refused);
  EXPECT_THAT(lines, HasSubstr("the database cannot be used"));
  EXPECT_THAT(lines, HasSubstr("password authentication failed"));
  EXPECT_EQ(lines.find("cannot be used"), lines.rfind("cannot be used")) << lines;
  const std::string doubtful = logged(store::postgresql::NoConnection(
      "connection to server failed: SSL error: certificate verify failed\n", false, {}, "PostgreSQL at db:5432"));
  EXPECT_THAT(doubtful, HasSubstr("certificate verify failed"));
  EXPECT_EQ(doubtful.find("cannot be used"), doubtful.rfind("cannot be used")) << doubtful;
}

}  // namespace
}  // namespace attune
