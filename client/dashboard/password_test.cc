#include "client/dashboard/password.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PasswordTest : public ::testing::Test {
 protected:
  ~PasswordTest() override { std::filesystem::remove(path_); }

  const std::string& Write(const std::string& text, std::filesystem::perms mode = std::filesystem::perms::owner_read) {
    std::filesystem::remove(path_);
    std::ofstream(path_) << text;
    std::filesystem::permissions(path_, mode);
    return path_;
  }
  static HttpRequest Bringing(const std::string& header) { return {.headers = {{"Authorization", header}}}; }
  static HttpRequest Basic(const std::string& pair) {
    return Bringing(absl::StrCat("Basic ", absl::Base64Escape(pair)));
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/attune-password-test-", getpid());
};

TEST_F(PasswordTest, LetsInWhoeverBringsIt) {
  const auto password = Password::Read(Write("correct: horse staple\n"));
  ASSERT_TRUE(password.ok()) << password.status();
  EXPECT_TRUE(password->Matches(Basic("me:correct: horse staple")));
  EXPECT_TRUE(password->Matches(Basic(":correct: horse staple")));
  EXPECT_TRUE(password->Matches(Bringing("basic " + absl::Base64Escape(":correct: horse staple"))));
}

TEST_F(PasswordTest, LetsNobodyElseIn) {
  const auto password = Password::Read(Write("correct horse staple"));
  ASSERT_TRUE(password.ok()) << password.status();
  EXPECT_FALSE(password->Matches({}));
  for (const char* pair : {"", ":", "me:", "correct horse staple", "me:correct horse stapl", "me:correct horse staple ",
                           "correct horse staple:"}) {
    EXPECT_FALSE(password->Matches(Basic(pair))) << pair;
  }
  for (const char* header : {"", "Basic", "Basic ", "Basic ???", "Bearer correct horse staple"}) {
    EXPECT_FALSE(password->Matches(Bringing(header))) << header;
  }
}

TEST_F(PasswordTest, AFileThatIsNoPasswordIsNamedWithWhatIsAllowed) {
  using std::filesystem::perms;
  const auto message = [](const std::string& path) { return std::string(Password::Read(path).status().message()); };
  EXPECT_THAT(message("/nowhere"), AllOf(HasSubstr("--password-file is '/nowhere', which cannot be read"),
                                         HasSubstr("allowed: a file that others may not open")));
  EXPECT_THAT(message(Write("elevenchars")), HasSubstr("which is too short"));
  EXPECT_THAT(message(Write("\n\n")), HasSubstr("which is too short"));
  EXPECT_THAT(message(Write("a line that is long\nand one more")), HasSubstr("which has several lines"));
  EXPECT_THAT(message(Write("long enough, this", perms::owner_read | perms::group_write)), HasSubstr("other users"));
  EXPECT_THAT(message(Write("long enough, this", perms::owner_read | perms::others_read)), HasSubstr("other users"));
}

TEST_F(PasswordTest, AsksABrowserForIt) {
  const HttpResponse response = Password::Ask();
  EXPECT_EQ(response.status, 401);
  EXPECT_THAT(response.headers, ::testing::Contains(::testing::Pair("WWW-Authenticate", HasSubstr("Basic realm="))));
}

}  // namespace
}  // namespace attune::dashboard
