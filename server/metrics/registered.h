// Families of prometheus-cpp's registry, for what is counted seldom enough to look a label up each time.
#ifndef ATTUNE_SERVER_METRICS_REGISTERED_H_
#define ATTUNE_SERVER_METRICS_REGISTERED_H_

#include <string>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace attune::metrics {

using CounterFamily = prometheus::Family<prometheus::Counter>;
using GaugeFamily = prometheus::Family<prometheus::Gauge>;
using HistogramFamily = prometheus::Family<prometheus::Histogram>;

inline CounterFamily& CountersOf(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline GaugeFamily& GaugesOf(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline HistogramFamily& HistogramsOf(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_REGISTERED_H_
