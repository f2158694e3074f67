// Jobs: those that wait and run, those that have ended and how, and what the last sweep has found.
#ifndef ATTUNE_SERVER_METRICS_JOBS_H_
#define ATTUNE_SERVER_METRICS_JOBS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/metrics/families.h"
#include "server/metrics/registered.h"
#include "server/metrics/source.h"

namespace attune::metrics {

// Jobs of one device and priority.
struct JobLoad {
  std::string device_class;
  std::string priority;
  size_t waiting = 0;
  size_t running = 0;
};

// Thread-safe.
class Jobs {
 public:
  explicit Jobs(prometheus::Registry& registry);

  // `kind`: "tune", "sweep" and so on. `operation` is done.
  void Ended(const std::string& kind, const v1::Operation& operation);
  // A job has had its first turn on a device of the class this long after it came.
  void Waited(const std::string& device_class, const std::string& priority, absl::Duration time);
  // A sweep succeeded at `end`, now or before this process began.
  void SweepSucceeded(absl::Time end);
  // What --on_miss has started, or wanted to: "started", "refused", "succeeded", "failed".
  void OnMiss(const std::string& what);

  Source<std::vector<JobLoad>>& loads() { return loads_; }
  void Collect(Families& families) const;

 private:
  CounterFamily& ended_;
  HistogramFamily& times_;
  HistogramFamily& waits_;
  prometheus::Counter& reused_;
  GaugeFamily& sweep_success_;
  GaugeFamily& sweep_problems_;
  CounterFamily& on_miss_;
  Source<std::vector<JobLoad>> loads_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_JOBS_H_
