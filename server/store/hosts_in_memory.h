// The hosts of a store that one process alone has open: that process. What it says of itself need not outlive it.
#ifndef ATTUNE_SERVER_STORE_HOSTS_IN_MEMORY_H_
#define ATTUNE_SERVER_STORE_HOSTS_IN_MEMORY_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/store/hosts.h"

namespace attune::store {

class HostsInMemory final : public Hosts {
 public:
  // `can_drain`: there is a queue that a host may leave to others.
  explicit HostsInMemory(std::function<absl::Time()> now, bool can_drain = true)
      : now_(std::move(now)), can_drain_(can_drain) {}

  absl::Status Register(const v1::Host& host, int64_t incarnation) override;
  absl::StatusOr<bool> Beat(absl::string_view name, int64_t incarnation) override;
  absl::Status Leave(absl::string_view name, int64_t incarnation) override;
  absl::StatusOr<std::vector<v1::Host>> List() override;
  absl::StatusOr<v1::Host> SetDraining(absl::string_view name, bool draining) override;
  absl::StatusOr<v1::Host> Forget(absl::string_view name) override;

 private:
  struct Entry {
    v1::Host host;  // as it registered
    int64_t incarnation = 0;
    absl::Time started;
    absl::Time seen;
    bool stopped = false;
    bool draining = false;
  };

  v1::Host Describe(const Entry& entry) const;

  const std::function<absl::Time()> now_;
  const bool can_drain_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, Entry, std::less<>> hosts_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_HOSTS_IN_MEMORY_H_
