#include "server/daemon/host_beat.h"

#include <limits>
#include <stop_token>
#include <utility>

#include "absl/random/random.h"
#include "server/base/log.h"
#include "server/base/pause.h"

namespace attune {

absl::StatusOr<std::unique_ptr<HostBeat>> HostBeat::Start(store::Hosts& hosts, v1::Host host, Told told,
                                                          absl::Duration period) {
  absl::BitGen random;
  const auto incarnation = absl::Uniform<int64_t>(random, 1, std::numeric_limits<int64_t>::max());
  if (absl::Status status = hosts.Register(host, incarnation); !status.ok()) return status;
  std::unique_ptr<HostBeat> beat(new HostBeat(hosts, std::move(host), std::move(told), incarnation));
  beat->Beat();
  beat->thread_ = std::jthread([beat = beat.get(), period](const std::stop_token& stop) {
    while (Pause(stop, period)) beat->Beat();
  });
  return beat;
}

HostBeat::~HostBeat() {
  thread_ = {};  // stopped and joined
  if (absl::Status left = hosts_.Leave(host_.name(), incarnation_); !left.ok()) {
    LogWarning("the store was not told that this host ends", {{"error", left.message()}});
  }
}

void HostBeat::Beat() {
  absl::StatusOr<bool> draining = hosts_.Beat(host_.name(), incarnation_);
  if (absl::IsNotFound(draining.status())) {  // it was taken for lost and forgotten
    const absl::Status again = hosts_.Register(host_, incarnation_);
    draining = again.ok() ? hosts_.Beat(host_.name(), incarnation_) : again;
  }
  Heard(draining);
  if (!draining.ok() || !told_) return;
  const absl::StatusOr<std::vector<v1::Host>> hosts = hosts_.List();
  if (hosts.ok()) told_(*hosts);
}

void HostBeat::Heard(const absl::StatusOr<bool>& draining) {
  if (draining.ok()) {
    if (draining_.exchange(*draining) != *draining) {
      LogInfo(*draining ? "draining: no work is taken from the queue" : "work is taken from the queue again");
    }
    if (std::exchange(away_, false)) LogInfo("the store hears of this host again");
    return;
  }
  // Whoever has the name now does the work.
  if (absl::IsAborted(draining.status())) draining_ = true;
  if (std::exchange(away_, true)) return;
  LogWarning("the store does not hear of this host", {{"error", draining.status().message()}});
}

}  // namespace attune
