// Nsight Compute's metrics: which are asked for, and what its table says of them.
#ifndef ATTUNE_SERVER_PROFILE_COUNTERS_H_
#define ATTUNE_SERVER_PROFILE_COUNTERS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/profile.pb.h"

namespace attune::profile {

// A metric, and which counter or stall it is.
struct Metric {
  std::string name;     // as ncu knows it, "dram__throughput.avg.pct_of_peak_sustained_elapsed"
  std::string counter;  // "dram_throughput"; of a stall its reason
  bool stall = false;
  double scale = 1;  // of its value, in ncu's base unit
};

// Base names in what `ncu --query-metrics` prints.
std::set<std::string> MetricsIn(absl::string_view listing);

// Of each counter the first of its metrics that the device has, and the stalls that it has.
std::vector<Metric> Choose(const std::set<std::string>& available);

// The metrics that ncu says it cannot find: in a version that lists what it cannot collect.
std::set<std::string> Unknown(absl::string_view output);

// A kernel a line of `ncu --csv --page=raw --print-units=base`, by its entry, the first of each; stalls as shares of
// their sum, the largest first. NotFound when there is no table, or no kernel in it.
absl::StatusOr<std::vector<v1::KernelProfile>> KernelsIn(absl::string_view output, const std::vector<Metric>& metrics);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_COUNTERS_H_
