#include "client/cli/default_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace attune::cli {
namespace {

TEST(DefaultServer, IsTheEnvironmentsThenASocketThenLocalhost) {
  for (const auto& vector : Golden("default_server")) {
    const auto variable = [&vector](const std::string& name) {
      return vector[name].is_null() ? "" : vector[name].get<std::string>();
    };
    const auto connects = [&vector](const std::string& path) {
      for (const auto& socket : vector["sockets"]) {
        if (socket == path) return true;
      }
      return false;
    };
    EXPECT_EQ(DefaultServer(variable, connects), vector["server"].get<std::string>()) << vector;
  }
}

TEST(DefaultServer, ConnectsToSocketsAlone) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/default-server-test-", getpid());
  EXPECT_FALSE(MayConnect(path));
  std::ofstream(path) << "a file";
  EXPECT_FALSE(MayConnect(path));
  unlink(path.c_str());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(MayConnect(path));
  close(fd);
  unlink(path.c_str());
}

}  // namespace
}  // namespace attune::cli
