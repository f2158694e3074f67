#include "server/access/local_users.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::access {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kOwn = 990;

TEST(LocalUsers, RootAndTheDaemonsOwnAreAdmins) {
  const LocalUsers users(kOwn, Role::kNone);
  EXPECT_EQ(users.Of(0).role, Role::kAdmin);
  EXPECT_EQ(users.Of(kOwn).role, Role::kAdmin);
  EXPECT_EQ(users.Of(1000).role, Role::kNone);
  EXPECT_EQ(users.Of(1000).name, "uid:1000");
}

TEST(LocalUsers, OthersHaveTheRoleThatIsAssignedOrTheCommonOne) {
  LocalUsers users(kOwn, Role::kTuner);
  ASSERT_TRUE(users.Assign({"1001=reader", "1002=admin", "nobody=none"}).ok());
  EXPECT_EQ(users.Of(1000).role, Role::kTuner);
  EXPECT_EQ(users.Of(1001).role, Role::kReader);
  EXPECT_EQ(users.Of(1002).role, Role::kAdmin);
  EXPECT_EQ(users.Of(65534).role, Role::kNone);
}

TEST(LocalUsers, SayWhatIsWrongWithAnEntry) {
  LocalUsers users(kOwn, Role::kTuner);
  const auto error = [&users](const char* entry) { return std::string(users.Assign({entry}).message()); };
  EXPECT_THAT(error("no.such.user=reader"), HasSubstr("'no.such.user=reader' names no user of this host"));
  EXPECT_THAT(error(""), HasSubstr("give NAME=ROLE or UID=ROLE"));
  EXPECT_EQ(error("1001=boss"), "'1001=boss' has the role 'boss'; allowed: none, reader, tuner, author, admin");
  EXPECT_THAT(error("1001"), HasSubstr("has the role ''"));
  EXPECT_THAT(error("root=reader"), HasSubstr("root and the daemon's own user are admins"));
  EXPECT_THAT(error("990=reader"), HasSubstr("root and the daemon's own user are admins"));
}

}  // namespace
}  // namespace attune::access
