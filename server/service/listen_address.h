// Where a server listens, as --listen has it.
#ifndef ATTUNE_SERVER_SERVICE_LISTEN_ADDRESS_H_
#define ATTUNE_SERVER_SERVICE_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sockaddr;

namespace attune::service {

struct ListenAddress {
  std::string path;   // of a Unix socket; empty: TCP
  std::string host;   // a name or an address, an IPv6 one without its brackets
  uint16_t port = 0;  // 0: any that is free
};

// "host:port", "[::1]:port" or "unix:/path". InvalidArgument quotes the text and says what is allowed.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Of an IPv4 or IPv6 address: whether only this host can connect to it.
bool IsLoopback(const sockaddr& address);

// FailedPrecondition when other hosts could connect to an address of `host`: nothing would be encrypted there. It names
// `text`, the address as it was given, and the ways out. OK for what cannot be resolved: listening on it says why.
absl::Status CheckReach(const ListenAddress& address, absl::string_view text);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_LISTEN_ADDRESS_H_
