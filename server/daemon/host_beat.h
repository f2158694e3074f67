// Writes this host down in the store and says every few seconds that it lives.
#ifndef ATTUNE_SERVER_DAEMON_HOST_BEAT_H_
#define ATTUNE_SERVER_DAEMON_HOST_BEAT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/fleet.pb.h"
#include "server/store/hosts.h"

namespace attune {

// Thread-safe.
class HostBeat {
 public:
  // Given after each beat every host that there is; on the beat's thread, which it must not hold up.
  using Told = std::function<void(const std::vector<v1::Host>&)>;

  // Registers `host`; from then on it beats every `period`, until the end of its life, when it says that the host ends.
  // `hosts` lives longer.
  static absl::StatusOr<std::unique_ptr<HostBeat>> Start(store::Hosts& hosts, v1::Host host, Told told = nullptr,
                                                         absl::Duration period = store::kHeartbeat);
  ~HostBeat();

  // Whether this host is to take no work from the queue.
  bool draining() const { return draining_; }

 private:
  HostBeat(store::Hosts& hosts, v1::Host host, Told told, int64_t incarnation)
      : hosts_(hosts), host_(std::move(host)), told_(std::move(told)), incarnation_(incarnation) {}

  void Beat();
  void Heard(const absl::StatusOr<bool>& draining);

  store::Hosts& hosts_;
  const v1::Host host_;
  const Told told_;
  const int64_t incarnation_;
  std::atomic<bool> draining_ = false;
  bool away_ = false;  // the last beat failed
  std::jthread thread_;
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_HOST_BEAT_H_
