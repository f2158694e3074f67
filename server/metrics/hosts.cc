#include "server/metrics/hosts.h"

#include <map>
#include <string>

namespace attune::metrics {
namespace {

std::string WordOf(const v1::Host& host) {
  switch (host.state()) {
    case v1::Host::STATE_LOST:
      return "lost";
    case v1::Host::STATE_STOPPED:
      return "stopped";
    default:
      return host.draining() ? "draining" : "live";
  }
}

}  // namespace

Hosts::Hosts(prometheus::Registry& registry)
    : hosts_(GaugesOf(registry, "attune_hosts", "Hosts that share the store, by state.")) {}

void Hosts::Set(const std::vector<v1::Host>& hosts) {
  std::map<std::string, int> counts = {{"live", 0}, {"draining", 0}, {"lost", 0}, {"stopped", 0}};
  for (const v1::Host& host : hosts) ++counts[WordOf(host)];
  for (const auto& [state, count] : counts) hosts_.Add({{"state", state}}).Set(count);
}

}  // namespace attune::metrics
