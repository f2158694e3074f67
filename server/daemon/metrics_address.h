// Where metrics are served, as --metrics_listen has it.
#ifndef ATTUNE_SERVER_DAEMON_METRICS_ADDRESS_H_
#define ATTUNE_SERVER_DAEMON_METRICS_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune {

struct MetricsAddress {
  std::string host;  // a numeric address
  int port = 0;      // 0: any that is free
};

// "9464" (on 127.0.0.1), "host:port" or "[::1]:port"; of a name its first address. InvalidArgument says what is
// allowed; FailedPrecondition when other hosts could connect and `insecure` does not allow that.
absl::StatusOr<MetricsAddress> ParseMetricsAddress(absl::string_view text, bool insecure);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_METRICS_ADDRESS_H_
