#include "server/service/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"

namespace attune::service {
namespace {

constexpr char kUnixPrefix[] = "unix:";
// Artifacts travel inside GetBest's response.
constexpr int kMaxMessageBytes = 64 << 20;

// Removes a socket file that nobody listens on any more.
absl::Status ClearStaleSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' exists and is not a socket"));
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat("socket path '", path, "' has ", path.size(),
                                                   " characters; allowed are ", sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool answered = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  if (answered) {
    return absl::FailedPreconditionError(absl::StrCat("another process listens on '", path, "'"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot remove the stale socket '", path, "': ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const std::vector<std::string>& addresses,
                                                      grpc::Service* service) {
  if (addresses.empty()) return absl::InvalidArgumentError("listen is empty; give host:port or unix:/path");
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Two daemons on one port would each get a share of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  std::vector<int> ports(addresses.size(), -1);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (absl::StartsWith(addresses[i], kUnixPrefix)) {
      absl::Status clear = ClearStaleSocket(std::string(absl::StripPrefix(addresses[i], kUnixPrefix)));
      if (!clear.ok()) return clear;
    }
    builder.AddListeningPort(addresses[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(service);
  auto server = std::make_unique<Server>();
  server->server_ = builder.BuildAndStart();
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (server->server_ == nullptr || ports[i] <= 0) {
      if (server->server_ == nullptr && i + 1 < addresses.size() && ports[i] > 0) continue;
      return absl::UnavailableError(absl::StrCat("cannot listen on '", addresses[i], "'; is it in use?"));
    }
    if (absl::StartsWith(addresses[i], kUnixPrefix)) {
      server->addresses_.push_back(addresses[i]);
    } else {
      server->addresses_.push_back(absl::StrCat(addresses[i].substr(0, addresses[i].rfind(':') + 1), ports[i]));
    }
  }
  return server;
}

void Server::Shutdown(absl::Duration grace) {
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(false);
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
  server_->Wait();
}

}  // namespace attune::service
