#include "server/metrics/metrics.h"

#include <utility>

#include "server/metrics/process.h"

namespace attune::metrics {

Metrics::Metrics(const std::string& version, std::vector<CallMethod> methods) : calls_(std::move(methods)) {
  GaugesOf(registry_, "attune_build_info", "1, with the daemon's version.").Add({{"version", version}}).Set(1);
}

std::vector<prometheus::MetricFamily> Metrics::Collect() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  calls_.Collect(families);
  answers_.Collect(families);
  jobs_.Collect(families);
  store_.Collect(families);
  CollectProcess(families);
  return families;
}

}  // namespace attune::metrics
