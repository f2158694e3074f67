// attune dashboard: its flags, what it prints, and its end. What it serves: client/dashboard.
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/testing/fake_world.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

TEST_F(CliTest, DashboardSaysWhereItListensAndEndsWhenItIsTold) {
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0"}), 0) << err;
  EXPECT_THAT(out, MatchesRegex("dashboard: http://127\\.0\\.0\\.1:[0-9]+/\n"));
  EXPECT_EQ(Run({"dashboard", "--listen", "[::1]:0", "--format=json"}), 0) << err;
  EXPECT_EQ(JsonLines().front()["type"], "dashboard");
  EXPECT_THAT(JsonLines().front()["url"].get<std::string>(), StartsWith("http://[::1]:"));
}

TEST_F(CliTest, DashboardStartsWithoutItsServer) {
  server.reset();
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0"}), 0) << err;
}

TEST_F(CliTest, DashboardRefusesAddressesThatOtherHostsReach) {
  EXPECT_EQ(Run({"dashboard", "--listen", "0.0.0.0:0"}), 2);
  EXPECT_THAT(err, AllOf(HasSubstr("--listen is '0.0.0.0:0'"), HasSubstr("allowed: 127.0.0.1, localhost and [::1]")));
  EXPECT_EQ(out, "");
}

TEST_F(CliTest, DashboardNamesTheFlagThatIsWrong) {
  EXPECT_EQ(Run({"dashboard", "--listen", "7412"}), 2);
  EXPECT_THAT(err, HasSubstr("--listen is '7412'; allowed: ADDRESS:PORT"));
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0", "--host-name", "a/b"}), 2);
  EXPECT_THAT(err, HasSubstr("--host-name is 'a/b'"));
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0", "--password-file", "/nowhere"}), 2);
  EXPECT_THAT(err, HasSubstr("--password-file is '/nowhere'"));
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0", "--web-root", "/nowhere"}), 2);
  EXPECT_THAT(err, HasSubstr("--web-root is '/nowhere'; allowed: a folder"));
}

// Where xdg-open notes its arguments.
class OpeningCliTest : public CliTest {
 protected:
  OpeningCliTest() {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/xdg-open") << "#!/bin/sh\necho \"$@\" >" << directory_ << "/new && mv " << directory_
                                            << "/new " << directory_ << "/opened\n";
    std::filesystem::permissions(directory_ + "/xdg-open", std::filesystem::perms::owner_all);
    variables["PATH"] = "/nowhere:" + directory_;
  }
  ~OpeningCliTest() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = ::testing::TempDir() + "/attune_opening";
};

TEST_F(OpeningCliTest, DashboardOpensTheBrowserWhenItIsToldTo) {
  ASSERT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0", "--open"}), 0) << err;
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!std::filesystem::exists(directory_ + "/opened") && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ("dashboard: " + *ReadFile(directory_ + "/opened"), out);
}

TEST_F(OpeningCliTest, DashboardGoesOnWithoutABrowser) {
  std::filesystem::remove(directory_ + "/xdg-open");
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0", "--open"}), 0);
  EXPECT_THAT(err, HasSubstr("there is no xdg-open"));
  EXPECT_THAT(out, StartsWith("dashboard: http://"));
}

}  // namespace
}  // namespace attune::cli
