// The HTTP server that Prometheus scrapes.
#ifndef ATTUNE_SERVER_METRICS_EXPOSER_H_
#define ATTUNE_SERVER_METRICS_EXPOSER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include "prometheus/exposer.h"

namespace attune::metrics {

// Serves /metrics and nothing else, as long as it lives.
class Exposer {
 public:
  // `host`: an address, not a name. Port 0: any that is free. Unavailable when it cannot listen there.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(const std::string& host, int port,
                                                        std::shared_ptr<prometheus::Collectable> metrics);

  // "127.0.0.1:9464", with the real port.
  const std::string& address() const { return address_; }

 private:
  Exposer() = default;

  std::shared_ptr<prometheus::Collectable> metrics_;
  std::unique_ptr<prometheus::Exposer> server_;  // last: it ends before what it reads
  std::string address_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_EXPOSER_H_
