#include "server/daemon/exposed_metrics.h"

#include <utility>

#include "server/base/log.h"
#include "server/daemon/metrics_address.h"
#include "server/service/call_methods.h"

namespace attune {

absl::StatusOr<ExposedMetrics> ExposedMetrics::Start(const Settings& settings, const std::string& version) {
  ExposedMetrics exposed;
  if (settings.metrics_listen.empty()) return exposed;
  const auto address = ParseMetricsAddress(settings.metrics_listen, settings.metrics_insecure);
  if (!address.ok()) return address.status();
  exposed.all_ = std::make_shared<metrics::Metrics>(version, service::CallMethods());
  auto exposer = metrics::Exposer::Start(address->host, address->port, exposed.all_);
  if (!exposer.ok()) return exposer.status();
  exposed.exposer_ = *std::move(exposer);
  LogInfo("metrics exposed", {{"address", exposed.exposer_->address()}});
  return exposed;
}

}  // namespace attune
