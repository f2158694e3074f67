// What the daemon counts of itself and where that can be read, if it was told to.
#ifndef ATTUNE_SERVER_DAEMON_EXPOSED_METRICS_H_
#define ATTUNE_SERVER_DAEMON_EXPOSED_METRICS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/daemon/settings.h"
#include "server/metrics/exposer.h"
#include "server/metrics/metrics.h"

namespace attune {

// Without --metrics_listen nothing is counted: everything here is null.
class ExposedMetrics {
 public:
  // Of settings without a mistake; Unavailable when it cannot listen.
  static absl::StatusOr<ExposedMetrics> Start(const Settings& settings, const std::string& version);

  metrics::Calls* calls() const { return all_ == nullptr ? nullptr : &all_->calls(); }
  metrics::Answers* answers() const { return all_ == nullptr ? nullptr : &all_->answers(); }
  metrics::Hosts* hosts() const { return all_ == nullptr ? nullptr : &all_->hosts(); }
  metrics::Jobs* jobs() const { return all_ == nullptr ? nullptr : &all_->jobs(); }
  metrics::Store* store() const { return all_ == nullptr ? nullptr : &all_->store(); }
  metrics::Workers* workers() const { return all_ == nullptr ? nullptr : &all_->workers(); }

 private:
  std::shared_ptr<metrics::Metrics> all_;
  std::unique_ptr<metrics::Exposer> exposer_;
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_EXPOSED_METRICS_H_
