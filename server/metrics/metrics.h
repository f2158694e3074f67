// What the daemon counts of itself, for Prometheus (docs/metrics.md). Each part of the server is handed its own; null
// where nothing is to be counted.
//
// Counting waits for nobody. A scrape reads memory and /proc: it waits for no disk, no writer and no device.
#ifndef ATTUNE_SERVER_METRICS_METRICS_H_
#define ATTUNE_SERVER_METRICS_METRICS_H_

#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/registry.h"
#include "server/metrics/answers.h"
#include "server/metrics/calls.h"
#include "server/metrics/hosts.h"
#include "server/metrics/jobs.h"
#include "server/metrics/store.h"
#include "server/metrics/workers.h"

namespace attune::metrics {

// Thread-safe.
class Metrics final : public prometheus::Collectable {
 public:
  Metrics(const std::string& version, std::vector<CallMethod> methods);

  Calls& calls() { return calls_; }
  Answers& answers() { return answers_; }
  Hosts& hosts() { return hosts_; }
  Jobs& jobs() { return jobs_; }
  Store& store() { return store_; }
  Workers& workers() { return workers_; }

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  prometheus::Registry registry_;  // before what registers there
  Calls calls_;
  Answers answers_;
  Hosts hosts_{registry_};
  Jobs jobs_{registry_};
  Store store_{registry_};
  Workers workers_{registry_};
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_METRICS_H_
