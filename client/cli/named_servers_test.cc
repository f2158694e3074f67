#include "client/cli/named_servers.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/cli/testing/fake_world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NamedServers, AreWhatTheFileSays) {
  for (const auto& vector : Golden("named_servers")) {
    const auto found =
        NamedServerIn(vector["text"].get<std::string>(), "/config/attune/servers", vector["name"].get<std::string>());
    if (vector.contains("error")) {
      EXPECT_EQ(found.status().message(), vector["error"].get<std::string>()) << vector;
    } else {
      ASSERT_TRUE(found.ok()) << found.status() << vector;
      EXPECT_EQ(*found, vector["found"].get<ServerVariables>()) << vector;
    }
  }
}

TEST(NamedServers, AreInTheUsersConfiguration) {
  std::map<std::string, std::string> variables = {{"XDG_CONFIG_HOME", "/config"}, {"HOME", "/home/me"}};
  const auto variable = [&variables](const std::string& name) { return variables[name]; };
  EXPECT_EQ(ServersPath(variable), "/config/attune/servers");
  variables["XDG_CONFIG_HOME"] = "config";
  EXPECT_EQ(ServersPath(variable), "/home/me/.config/attune/servers");
  variables.clear();
  EXPECT_EQ(ServersPath(variable), "");
}

TEST(NamedServers, AreNoneWithoutAFile) {
  const auto variable = [](const std::string&) { return std::string("/nowhere"); };
  EXPECT_EQ(NamedServer("l4", variable).status(),
            absl::InvalidArgumentError("the server is 'l4'; it must be host:port, unix:/path, or a name in "
                                       "/nowhere/attune/servers, which does not exist"));
  const auto nothing = [](const std::string&) { return std::string(); };
  EXPECT_EQ(NamedServer("l4", nothing).status(),
            absl::InvalidArgumentError(
                "the server is 'l4'; it must be host:port, unix:/path, or a name, if $HOME is set (docs/cli.md)"));
  for (const char* server : {"", "l4:7411", "unix:/run/attuned.sock"}) {
    const auto found = NamedServer(server, variable);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, IsEmpty()) << server;
  }
}

class NamedServersCliTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    config_ = absl::StrCat(::testing::TempDir(), "/named-servers-test-", getpid());
    std::filesystem::create_directories(absl::StrCat(config_, "/attune"));
    variables["XDG_CONFIG_HOME"] = config_;
    variables["ATTUNE_SERVER"] = "";
  }
  void TearDown() override { std::filesystem::remove_all(config_); }

  std::string path() const { return absl::StrCat(config_, "/attune/servers"); }
  void Write(absl::string_view text) { std::ofstream(path()) << text; }

 private:
  std::string config_;
};

TEST_F(NamedServersCliTest, AreGivenAsTheOptionOrTheVariable) {
  Write(absl::StrCat("[own]\nserver = ", server->address(), "\n[other]\nserver = unix:/nobody\n"));
  EXPECT_EQ(Run({"devices", "--server", "own"}), 0) << err;
  EXPECT_THAT(out, HasSubstr(absl::StrCat(" at ", server->address())));
  variables["ATTUNE_SERVER"] = "own";
  EXPECT_EQ(Run({"devices"}), 0) << err;
  EXPECT_EQ(Run({"devices", "--server", "other"}), 4);
  EXPECT_EQ(Run({"devices", "--server", "third"}), 2);
  EXPECT_THAT(err, HasSubstr(absl::StrCat("or a name in ", path(), ": other, own")));
}

TEST_F(NamedServersCliTest, BringTheirOwnTokens) {
  const std::string named = absl::StrCat("server = ", server->address(), "\ntoken_file = own.token\n");
  Write(absl::StrCat("[own]\n", named));
  variables["ATTUNE_TOKEN_FILE"] = "/nowhere/any.token";
  EXPECT_EQ(Run({"devices", "--server", "own"}), 3);
  EXPECT_THAT(err, HasSubstr("attune/own.token"));
  EXPECT_EQ(Run({"devices", "--server", server->address()}), 3);
  EXPECT_THAT(err, HasSubstr("/nowhere/any.token"));
  EXPECT_EQ(Run({"devices", "--server", "own", "--token-file", "/nowhere/given.token"}), 3);
  EXPECT_THAT(err, HasSubstr("/nowhere/given.token"));
}

TEST_F(NamedServersCliTest, AreNotSentTheEnvironmentsToken) {
  const std::string named = absl::StrCat("server = ", server->address(), "\n");
  Write(absl::StrCat("[own]\n", named));
  variables["ATTUNE_TOKEN_FILE"] = "/nowhere/any.token";
  EXPECT_EQ(Run({"devices", "--server", "own"}), 0) << err;
  variables["ATTUNE_SERVER"] = "own";
  EXPECT_EQ(Run({"devices"}), 0) << err;
  EXPECT_EQ(Run({"devices", "--token-file", "/nowhere/given.token"}), 3);
  EXPECT_THAT(err, HasSubstr("/nowhere/given.token"));
}

TEST_F(NamedServersCliTest, AreReachedWithTheEnvironmentsCertificates) {
  Write("[own]\nserver = l4:7411\n");
  variables["ATTUNE_TLS_CA"] = "/nowhere/ca.pem";
  EXPECT_EQ(Run({"devices", "--server", "own"}), 2);
  EXPECT_THAT(err, HasSubstr("/nowhere/ca.pem"));
}

TEST_F(NamedServersCliTest, AreRefusedWithTheLineThatIsWrong) {
  Write("[own]\nserver = unix:/nobody\nhost = h\n");
  EXPECT_EQ(Run({"devices", "--server", "own"}), 2);
  EXPECT_THAT(err, HasSubstr(absl::StrCat("attune: ", path(), ":3: the key is 'host'; it must be server")));
}

}  // namespace
}  // namespace attune::cli
