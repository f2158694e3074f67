#include "server/store/hosts_in_memory.h"

#include "absl/strings/str_cat.h"
#include "server/base/proto_time.h"

namespace attune::store {

v1::Host HostsInMemory::Describe(const Entry& entry) const {
  v1::Host host = entry.host;
  const absl::Duration age = now_() - entry.seen;
  host.set_state(StateOf(entry.stopped, age));
  host.set_draining(entry.draining);
  SetTimestamp(entry.started, host.mutable_start_time());
  SetTimestamp(entry.seen, host.mutable_heartbeat_time());
  SetDuration(age, host.mutable_heartbeat_age());
  return host;
}

absl::Status HostsInMemory::Register(const v1::Host& host, int64_t incarnation) {
  if (absl::Status status = CheckNewHost(host); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = hosts_[host.name()];
  entry.host = host;
  entry.incarnation = incarnation;
  entry.started = entry.seen = now_();
  entry.stopped = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> HostsInMemory::Beat(absl::string_view name, int64_t incarnation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return NoHost(name);
  if (it->second.incarnation != incarnation) return OtherStart(name);
  it->second.seen = now_();
  it->second.stopped = false;
  return it->second.draining;
}

absl::Status HostsInMemory::Leave(absl::string_view name, int64_t incarnation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = hosts_.find(name);
  if (it != hosts_.end() && it->second.incarnation == incarnation) it->second.stopped = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Host>> HostsInMemory::List() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::Host> hosts;
  for (const auto& [name, entry] : hosts_) hosts.push_back(Describe(entry));
  return hosts;
}

absl::StatusOr<v1::Host> HostsInMemory::SetDraining(absl::string_view name, bool draining) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return NoHost(name);
  if (!can_drain_) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " has a store of its own, so nobody else could do its work: hosts drain where several share a store"));
  }
  it->second.draining = draining;
  return Describe(it->second);
}

absl::StatusOr<v1::Host> HostsInMemory::Forget(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return NoHost(name);
  v1::Host host = Describe(it->second);
  if (absl::Status status = CheckForgettable(host); !status.ok()) return status;
  hosts_.erase(it);
  return host;
}

}  // namespace attune::store
