#include "server/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

constexpr pid_t kSelf = 42;

// A service manager's end of the socket.
class Listening {
 public:
  Listening() : path_(absl::StrCat(::testing::TempDir(), "/notify.", getpid())) {
    unlink(path_.c_str());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    timeval patience = {};
    patience.tv_sec = 60;
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Listening() {
    close(fd_);
    unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::string Next() {
    char bytes[1024];
    const ssize_t size = recv(fd_, bytes, sizeof(bytes), 0);
    return size < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(size));
  }

 private:
  const std::string path_;
  const int fd_ = socket(AF_UNIX, SOCK_DGRAM, 0);
};

TEST(ServiceManager, IsToldWhatTheDaemonDoes) {
  Listening systemd;
  ServiceManager manager({.socket = systemd.path()});
  manager.Ready("serving");
  EXPECT_EQ(systemd.Next(), "READY=1\nSTATUS=serving");
  manager.Stopping("draining");
  EXPECT_EQ(systemd.Next(), "STOPPING=1\nSTATUS=draining");
}

TEST(ServiceManager, IsToldAgainAndAgainThatTheDaemonLives) {
  Listening systemd;
  ServiceManager manager({.socket = systemd.path(), .watchdog = absl::Milliseconds(20)});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(systemd.Next(), "WATCHDOG=1");
}

TEST(ServiceManager, ThatIsNotThereIsNoError) {
  ServiceManager nobody({});
  nobody.Ready("serving");
  ServiceManager gone({.socket = "/nonexistent/notify", .watchdog = absl::Seconds(30)});
  gone.Ready("serving");
}

TEST(ServiceManagerOf, ReadsTheEnvironment) {
  const ServiceManagerAddress address = ServiceManagerOf("/run/systemd/notify", "60000000", "42", kSelf);
  EXPECT_EQ(address.socket, "/run/systemd/notify");
  EXPECT_EQ(address.watchdog, absl::Minutes(1));
  EXPECT_EQ(ServiceManagerOf("@notify", "60000000", nullptr, kSelf).watchdog, absl::Minutes(1));
  EXPECT_EQ(ServiceManagerOf("/s", "60000000", "43", kSelf).watchdog, absl::ZeroDuration())
      << "another process is meant";
  EXPECT_EQ(ServiceManagerOf("/s", "soon", nullptr, kSelf).watchdog, absl::ZeroDuration());
  EXPECT_EQ(ServiceManagerOf("vsock:2:1", nullptr, nullptr, kSelf).socket, "") << "another kind of socket";
}

}  // namespace
}  // namespace attune
