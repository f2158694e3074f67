// The store that the settings name: SQLite's in --data_dir, or PostgreSQL's, which many daemons may have open.
#ifndef ATTUNE_SERVER_DAEMON_OPENED_STORE_H_
#define ATTUNE_SERVER_DAEMON_OPENED_STORE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/daemon/settings.h"
#include "server/metrics/store.h"
#include "server/store/lock_file.h"
#include "server/store/store.h"

namespace attune {

struct OpenedStore {
  std::optional<store::LockFile> lock;  // of --data_dir, where the store has none itself
  std::string holder = "attuned";       // of jobs' leases: this daemon's name among those that share the store
  bool shared = false;                  // with daemons that change what is served, too
  std::unique_ptr<store::Store> store;
};

// As whom the daemon of a data directory leases jobs of a store that it shares. Made when it is asked for first and
// kept there, so that the next start goes on with this one's jobs whatever the host is called by then, and no other
// daemon has the name.
absl::StatusOr<std::string> NameOfDaemon(const std::string& data_dir);

// `metrics` may be null, and lives longer.
absl::StatusOr<OpenedStore> OpenStore(const Settings& settings, metrics::Store* metrics);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_OPENED_STORE_H_
