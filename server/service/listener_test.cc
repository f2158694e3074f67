#include "server/service/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;

class ListenerTest : public ::testing::Test {
 protected:
  ListenerTest() : path_(absl::StrCat(::testing::TempDir(), "/attune-listener-test-", getpid(), ".sock")) {}
  ~ListenerTest() override {
    for (int fd : accepted_) close(fd);
    unlink(path_.c_str());
  }
  std::unique_ptr<Listener> Open(const std::vector<std::string>& addresses) {
    absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open(addresses, /*insecure=*/false);
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }
  std::unique_ptr<Listener> Start(const std::vector<std::string>& addresses, ConnectionLimits limits) {
    std::unique_ptr<Listener> listener = Open(addresses);
    listener->Start(limits, [this](int fd, const Peer& peer) {
      const std::lock_guard lock(mutex_);
      accepted_.push_back(fd);
      peers_.push_back(peer);
      changed_.notify_all();
    });
    return listener;
  }
  bool AwaitAccepted(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return accepted_.size() >= count; });
  }
  static int PortOf(const std::string& address) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    return port;
  }
  static int ConnectTcp(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  int ConnectLocally() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> accepted_;
  std::vector<Peer> peers_;
};

TEST_F(ListenerTest, HandsOverConnectionsOfEveryAddress) {
  const auto listener = Start({"localhost:0", "unix:" + path_}, {10'000, 10'000});
  ASSERT_EQ(listener->addresses().size(), 2u);
  const int tcp = ConnectTcp(PortOf(listener->addresses()[0]));
  const int local = ConnectLocally();
  EXPECT_TRUE(AwaitAccepted(2));
  close(tcp);
  close(local);
}

TEST_F(ListenerTest, SaysWhoseProcessConnectedAndOverWhat) {
  const auto listener = Start({"localhost:0", "unix:" + path_}, {10'000, 10'000});
  const int local = ConnectLocally();
  ASSERT_TRUE(AwaitAccepted(1));
  const int tcp = ConnectTcp(PortOf(listener->addresses()[0]));
  ASSERT_TRUE(AwaitAccepted(2));
  EXPECT_EQ(peers_[0].transport, Peer::Transport::kUnix);
  EXPECT_EQ(peers_[0].uid, geteuid());
  EXPECT_EQ(peers_[1].transport, Peer::Transport::kLoopback);
  close(tcp);
  close(local);
}

TEST_F(ListenerTest, ListensBeyondThisHostOnlyWhenItIsSaid) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    EXPECT_EQ(Listener::Open({address}, /*insecure=*/false).status().message(),
              absl::StrCat("'", address,
                           "' can be reached from other hosts, and nothing is encrypted there; have it encrypted "
                           "(--tls_cert, --tls_key), listen on localhost or unix:/path, to both of which ssh -L "
                           "forwards, or say --insecure"));
  }
  const auto opened = Listener::Open({"0.0.0.0:0"}, /*insecure=*/true);
  ASSERT_TRUE(opened.ok()) << opened.status();
  (*opened)->Start({10'000, 10'000}, [this](int fd, const Peer& peer) {
    const std::lock_guard lock(mutex_);
    accepted_.push_back(fd);
    peers_.push_back(peer);
    changed_.notify_all();
  });
  const int tcp = ConnectTcp(PortOf((*opened)->addresses()[0]));
  ASSERT_TRUE(AwaitAccepted(1));
  EXPECT_EQ(peers_[0].transport, Peer::Transport::kNetwork) << "although the client is on this host";
  close(tcp);
  (*opened)->Stop();
}

TEST_F(ListenerTest, LeavesDescriptorsForFilesAndSomeOfTheRestForThisHost) {
  const auto listener = Start({"localhost:0", "unix:" + path_}, {.tcp = 3, .local = 10'000});
  const int tcp = ConnectTcp(PortOf(listener->addresses()[0]));
  char byte;
  EXPECT_LE(read(tcp, &byte, 1), 0);  // closed at once, not left to wait
  const int local = ConnectLocally();
  EXPECT_TRUE(AwaitAccepted(1));
  close(tcp);
  close(local);
}

TEST_F(ListenerTest, ASocketIsItsOwnersAndItsGroupsWhateverTheUmask) {
  for (const mode_t mask : {0077, 0}) {
    const mode_t before = umask(mask);
    const auto listener = Open({"unix:" + path_});
    umask(before);
    struct stat info = {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0660u);
  }
}

TEST_F(ListenerTest, MakesTheDirectoryOfItsSocket) {
  const std::string directory = path_ + ".directory";
  EXPECT_EQ(Open({"unix:" + directory + "/sock"})->addresses().size(), 1u);
  EXPECT_TRUE(std::filesystem::is_directory(directory));
  std::filesystem::remove_all(directory);
}

TEST_F(ListenerTest, RemovesItsSocketAndNobodyElses) {
  Open({"unix:" + path_})->Stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
  const auto listener = Open({"unix:" + path_});
  std::filesystem::remove(path_);
  std::ofstream(path_) << "somebody's";
  listener->Stop();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ListenerTest, SaysWhyItCannot) {
  const auto listener = Open({"localhost:0"});
  const std::string& address = listener->addresses()[0];
  EXPECT_EQ(Listener::Open({address}, false).status().message(),
            absl::StrCat("cannot listen on '", address, "': Address already in use"));
  EXPECT_THAT(std::string(Listener::Open({"unix:/nonexistent/no/sock"}, false).status().message()),
              HasSubstr("cannot listen on '/nonexistent/no/sock': No such file or directory"));
  EXPECT_THAT(std::string(Listener::Open({"no.such.host.invalid:1"}, false).status().message()),
              HasSubstr("cannot listen on 'no.such.host.invalid:1'"));
  EXPECT_THAT(std::string(Listener::Open({"foo"}, false).status().message()), HasSubstr("'foo' is not host:port"));
}

TEST(ConnectionLimits, LeaveRoomForFilesAndWorkers) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {1024, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const ConnectionLimits limits = LimitsOfThisProcess();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GT(limits.tcp, 0);
  EXPECT_LT(limits.tcp, limits.local);
  EXPECT_LE(limits.local, 1024 - 128);
}

}  // namespace
}  // namespace attune::service
