#include "client/cpp/token.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/testing/fake_access.h"
#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(Token, IsTheOneLineOfItsFile) {
  for (const auto& vector : Golden("token", "tokens")) {
    const auto token = TokenIn(vector["contents"].get<std::string>(), "file");
    ASSERT_EQ(token.ok(), !vector["token"].is_null()) << vector;
    if (token.ok()) {
      EXPECT_EQ(*token, vector["token"].get<std::string>());
    }
  }
}

TEST(Token, StaysOnThisHost) {
  for (const auto& server : Golden("token", "local")) EXPECT_TRUE(IsLocal(server.get<std::string>())) << server;
  for (const auto& server : Golden("token", "remote")) {
    EXPECT_FALSE(IsLocal(server.get<std::string>())) << server;
    const auto client = Client::Connect(server.get<std::string>(), {.token_file = "token", .tls = {.insecure = true}});
    EXPECT_TRUE(absl::IsFailedPrecondition(client.status())) << client.status();
  }
}

class TokenFileTest : public ::testing::Test {
 protected:
  ~TokenFileTest() override { unlink(path_.c_str()); }
  void Write(const std::string& token) { std::ofstream(path_) << token << "\n"; }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/token-test-", getpid());
  testing::FakeAttune fake_;
  testing::FakeAccess access_;
  testing::RunningServer server_{&fake_, "127.0.0.1:0", &access_};
  std::unique_ptr<Client> client_ = *Client::Connect(server_.address(), {.token_file = path_});
};

TEST_F(TokenFileTest, IsReadForEachCall) {
  Write("attune_first");
  ASSERT_TRUE(client_->ListTokens().ok());
  EXPECT_EQ(access_.authorization(), "Bearer attune_first");
  Write("attune_second");
  ASSERT_TRUE(client_->ListTokens().ok());
  EXPECT_EQ(access_.authorization(), "Bearer attune_second");
}

TEST_F(TokenFileTest, IsBroughtByWatchesToo) {
  Write("attune_first");
  fake_.HasOperation(testing::EndedEvaluation(v1::EvaluateResult::DECISION_KEEP));
  EXPECT_TRUE(client_->Watch("operations/7", [](const v1::Operation&) {}).ok());
  EXPECT_EQ(fake_.authorization(), "Bearer attune_first");
}

TEST_F(TokenFileTest, WithoutATokenNoCallIsMade) {
  EXPECT_THAT(std::string(client_->Ping().message()), HasSubstr(path_));
  Write("");
  EXPECT_THAT(std::string(client_->Ping().message()), HasSubstr("is empty; `attune token create` prints one"));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Watch("operations/7", [](const v1::Operation&) {}).status()));
  EXPECT_EQ(fake_.calls("Ping"), 0);
}

TEST_F(TokenFileTest, OfNoneNothingIsBrought) {
  const auto client = *Client::Connect(server_.address());
  ASSERT_TRUE(client->ListTokens().ok());
  EXPECT_EQ(access_.authorization(), "");
}

}  // namespace
}  // namespace attune
