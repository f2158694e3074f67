// Prometheus' families, as this folder writes them.
#ifndef ATTUNE_SERVER_METRICS_FAMILIES_H_
#define ATTUNE_SERVER_METRICS_FAMILIES_H_

#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"

namespace attune::metrics {

using Families = std::vector<prometheus::MetricFamily>;
using Labels = std::vector<prometheus::ClientMetric::Label>;

inline prometheus::MetricFamily MakeFamily(std::string name, std::string help, prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

// One value more of a family of counters or gauges.
inline void AddValue(prometheus::MetricFamily& family, Labels labels, double value) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
}

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_FAMILIES_H_
