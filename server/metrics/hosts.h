// The hosts that share a store, as this one's beat last found them.
#ifndef ATTUNE_SERVER_METRICS_HOSTS_H_
#define ATTUNE_SERVER_METRICS_HOSTS_H_

#include <vector>

#include "attune/v1/fleet.pb.h"
#include "server/metrics/registered.h"

namespace attune::metrics {

// Thread-safe.
class Hosts {
 public:
  explicit Hosts(prometheus::Registry& registry);

  // All that there are.
  void Set(const std::vector<v1::Host>& hosts);

 private:
  GaugeFamily& hosts_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_HOSTS_H_
