// The hosts that share a store: each daemon writes itself and its devices down when it starts, and says every few
// seconds that it lives. What a host has leased it renews by itself (queue.h).
//
// Times are the store's, no host's clock enters. Thread-safe. Errors are those of store.h.
#ifndef ATTUNE_SERVER_STORE_HOSTS_H_
#define ATTUNE_SERVER_STORE_HOSTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/fleet.pb.h"

namespace attune::store {

inline constexpr absl::Duration kHeartbeat = absl::Seconds(5);
// A host that was not heard of for so long is LOST.
inline constexpr absl::Duration kHostTtl = absl::Seconds(20);

// "hosts/gpu7-1a2b3c4d" of the holder (queue.h) "gpu7-1a2b3c4d", and back.
inline std::string HostName(absl::string_view holder) { return absl::StrCat("hosts/", holder); }
std::string HolderOf(absl::string_view host_name);

class Hosts {
 public:
  virtual ~Hosts() = default;

  // Writes the host down: its name, version, devices and backends. It lives from now on. `incarnation` is this start's
  // own: an earlier start of the same name is heard no longer. Whether it drains stays as it was.
  virtual absl::Status Register(const v1::Host& host, int64_t incarnation) = 0;
  // It lives. Whether it is to drain. NotFound when nobody of that name is registered (any longer); Aborted when a
  // later start is.
  virtual absl::StatusOr<bool> Beat(absl::string_view name, int64_t incarnation) = 0;
  // It ends. Nothing happens when it is not registered, or a later start is.
  virtual absl::Status Leave(absl::string_view name, int64_t incarnation) = 0;

  // By name, without operations.
  virtual absl::StatusOr<std::vector<v1::Host>> List() = 0;
  // As it then is; NotFound. FailedPrecondition where no other host could take its work.
  virtual absl::StatusOr<v1::Host> SetDraining(absl::string_view name, bool draining) = 0;
  // As it was. FailedPrecondition while it is LIVE.
  virtual absl::StatusOr<v1::Host> Forget(absl::string_view name) = 0;
};

// What every implementation says.
absl::Status NoHost(absl::string_view name);
absl::Status CheckNewHost(const v1::Host& host);
absl::Status OtherStart(absl::string_view name);
absl::Status CheckForgettable(const v1::Host& host);
// As its row is: `stopped`, and how long it was not heard of.
v1::Host::State StateOf(bool stopped, absl::Duration age);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_HOSTS_H_
