// Where a server listens, as --listen has it.
#ifndef ATTUNE_SERVER_SERVICE_LISTEN_ADDRESS_H_
#define ATTUNE_SERVER_SERVICE_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::service {

struct ListenAddress {
  std::string path;   // of a Unix socket; empty: TCP
  std::string host;   // a name or an address, an IPv6 one without its brackets
  uint16_t port = 0;  // 0: any that is free
};

// "host:port", "[::1]:port" or "unix:/path". InvalidArgument quotes the text and says what is allowed.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_LISTEN_ADDRESS_H_
