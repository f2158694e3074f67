#include "server/metrics/calls.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace attune::metrics {
namespace {

using prometheus::MetricType;

// As go-grpc-prometheus spells them.
constexpr const char* kCodeNames[Calls::kCodes] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

Labels LabelsOf(const CallMethod& method) {
  return {{"grpc_type", method.streams ? "server_stream" : "unary"},
          {"grpc_service", method.service},
          {"grpc_method", method.name}};
}

prometheus::ClientMetric HistogramOf(const Latencies& times) {
  prometheus::ClientMetric metric;
  uint64_t count = 0;
  for (size_t i = 0; i <= Latencies::kBounds.size(); ++i) {
    count += times.in_bucket(i);
    const bool last = i == Latencies::kBounds.size();
    metric.histogram.bucket.push_back({count, last ? std::numeric_limits<double>::infinity() : Latencies::kBounds[i]});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = times.seconds();
  return metric;
}

}  // namespace

Calls::Calls(std::vector<CallMethod> methods)
    : methods_(std::move(methods)), counts_(std::make_unique<Counts[]>(methods_.size())) {}

void Calls::Collect(Families& families) const {
  auto begun = MakeFamily("grpc_server_started_total", "Calls that have begun.", MetricType::Counter);
  auto ended = MakeFamily("grpc_server_handled_total", "Calls that have ended, by their status.", MetricType::Counter);
  auto times = MakeFamily("grpc_server_handling_seconds", "How long calls took, until their answer was given to gRPC.",
                          MetricType::Histogram);
  for (size_t i = 0; i < methods_.size(); ++i) {
    const Counts& counts = counts_[i];
    const Labels labels = LabelsOf(methods_[i]);
    AddValue(begun, labels, static_cast<double>(counts.begun.value()));
    for (size_t code = 0; code < kCodes; ++code) {
      // Of what never happened OK alone is told, so that every method is there from the beginning.
      if (code != 0 && counts.ended[code].value() == 0) continue;
      Labels with_code = labels;
      with_code.push_back({"grpc_code", kCodeNames[code]});
      AddValue(ended, std::move(with_code), static_cast<double>(counts.ended[code].value()));
    }
    prometheus::ClientMetric histogram = HistogramOf(counts.times);
    if (histogram.histogram.sample_count == 0) continue;
    histogram.label = labels;
    times.metric.push_back(std::move(histogram));
  }
  families.push_back(std::move(begun));
  families.push_back(std::move(ended));
  if (!times.metric.empty()) families.push_back(std::move(times));
}

}  // namespace attune::metrics
