#include "server/access/tokens.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/proto_time.h"

namespace attune::access {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TokensTest : public ::testing::Test {
 protected:
  TokensTest() : path_(absl::StrCat(::testing::TempDir(), "/attune-tokens-test-", getpid())) {}
  ~TokensTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<Tokens> Open() const {
    auto tokens = Tokens::Open(path_);
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return *std::move(tokens);
  }
  absl::StatusOr<v1::CreateTokenResponse> Create(Tokens& tokens, const std::string& id, const std::string& role,
                                                 absl::Duration lifetime = absl::Hours(1)) const {
    v1::CreateTokenRequest request;
    request.set_id(id);
    request.set_role(role);
    SetDuration(lifetime, request.mutable_lifetime());
    return tokens.Create(request, "uid:7", now_);
  }

  const std::string path_;
  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(TokensTest, GiveTheirRoleAlsoAfterARestart) {
  std::string secret;
  {
    const auto tokens = Open();
    const auto made = Create(*tokens, "nightly", "tuner");
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->token().name(), "tokens/nightly");
    EXPECT_EQ(made->token().created_by(), "uid:7");
    secret = made->secret();
    EXPECT_EQ((*tokens->Find(secret, now_))->name, "token:nightly");
  }
  const auto tokens = Open();
  const auto found = tokens->Find(secret, now_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->role, Role::kTuner);
}

TEST_F(TokensTest, AreNotInTheFileThemselves) {
  const auto made = Create(*Open(), "a", "reader");
  std::ifstream file(path_, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_THAT(bytes, HasSubstr("tokens/a"));
  EXPECT_THAT(bytes, Not(HasSubstr(made->secret())));
  EXPECT_GE(made->secret().size(), 40u);
}

TEST_F(TokensTest, AreRefusedWhenTheyExpireAndWhenTheyAreRevoked) {
  const auto tokens = Open();
  const auto made = Create(*tokens, "short", "admin", absl::Minutes(1));
  const std::string secret = made->secret();
  EXPECT_TRUE(tokens->Find(secret, now_ + absl::Seconds(59)).ok());
  EXPECT_EQ(tokens->Find(secret, now_ + absl::Seconds(60)).status().message(),
            "token:short expired 2023-11-14 22:14 UTC; have another one made");
  ASSERT_TRUE(tokens->Revoke("tokens/short").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(tokens->Find(secret, now_).status()));
  EXPECT_TRUE(absl::IsNotFound(tokens->Revoke("tokens/short").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(Open()->Find(secret, now_).status())) << "after a restart, too";
  EXPECT_TRUE(tokens->List().empty());
}

TEST_F(TokensTest, AreRevokedOnceMoreWhereTheDiskTookNothing) {
  const auto tokens = Open();
  const auto made = Create(*tokens, "a", "admin");
  const std::string aside = path_ + ".aside";
  std::filesystem::rename(path_, aside);
  std::filesystem::create_directory(path_);  // nothing takes its place
  EXPECT_FALSE(tokens->Revoke("tokens/a").ok());
  EXPECT_FALSE(tokens->Find(made->secret(), now_).ok());
  std::filesystem::remove(path_);
  std::filesystem::rename(aside, path_);
  EXPECT_TRUE(Open()->Find(made->secret(), now_).ok()) << "as a restart would have it";
  EXPECT_TRUE(tokens->Revoke("tokens/a").ok());
  EXPECT_FALSE(Open()->Find(made->secret(), now_).ok());
  EXPECT_TRUE(absl::IsNotFound(tokens->Revoke("tokens/a").status()));
}

TEST_F(TokensTest, ThatWereGuessedAreRefused) {
  const auto tokens = Open();
  const auto made = Create(*tokens, "a", "reader");
  for (const std::string& guess : {std::string(), std::string("attune_"), made->secret() + "A", std::string("a")}) {
    EXPECT_TRUE(absl::IsUnauthenticated(tokens->Find(guess, now_).status())) << guess;
  }
}

TEST_F(TokensTest, MayBeMadeAnewOnceTheyAreRevoked) {
  const auto tokens = Open();
  const auto first = Create(*tokens, "a", "reader");
  EXPECT_TRUE(absl::IsAlreadyExists(Create(*tokens, "a", "reader").status()));
  ASSERT_TRUE(tokens->Revoke("tokens/a").ok());
  const auto second = Create(*tokens, "a", "tuner");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(tokens->Find(first->secret(), now_).ok());
  EXPECT_EQ((*tokens->Find(second->secret(), now_))->role, Role::kTuner);
}

// Slots are fewer than the tokens that are ever made.
TEST_F(TokensTest, AreFoundHoweverManyWereRevokedBefore) {
  const auto tokens = *Tokens::Open(path_, /*slots=*/8);
  const auto kept = Create(*tokens, "kept", "reader");
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Create(*tokens, "passing", "reader").ok());
    ASSERT_TRUE(tokens->Revoke("tokens/passing").ok());
  }
  EXPECT_TRUE(tokens->Find(kept->secret(), now_).ok());
}

TEST_F(TokensTest, AreFoundWhileOthersAreMade) {
  const auto tokens = Open();
  const auto kept = Create(*tokens, "kept", "reader");
  std::thread making([&] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(Create(*tokens, absl::StrCat("t", i), "tuner").ok());
  });
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(tokens->Find(kept->secret(), now_).ok());
  making.join();
  EXPECT_EQ(tokens->List().size(), 201u);
}

TEST_F(TokensTest, SayWhatIsWrongWithARequest) {
  const auto tokens = Open();
  const auto error = [&](const std::string& id, const std::string& role, absl::Duration lifetime) {
    return std::string(Create(*tokens, id, role, lifetime).status().message());
  };
  EXPECT_THAT(error("", "reader", absl::Hours(1)), HasSubstr("id is ''; allowed: 1 to 64 letters"));
  EXPECT_THAT(error("../x", "reader", absl::Hours(1)), HasSubstr("id is '../x'"));
  EXPECT_EQ(error("a", "none", absl::Hours(1)), "role is 'none'; allowed: reader, tuner, author, admin");
  EXPECT_EQ(error("a", "reader", absl::Seconds(1)), "lifetime is 1s; allowed: 1m to 87600h");
}

TEST_F(TokensTest, ADamagedFileIsNamed) {
  std::ofstream(path_) << "\xff\xff";
  EXPECT_EQ(Tokens::Open(path_).status().message(),
            absl::StrCat(path_, " is damaged; without it the daemon starts and knows no token"));
}

}  // namespace
}  // namespace attune::access
