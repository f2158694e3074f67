// The store that the settings name: SQLite's in --data_dir, or PostgreSQL's, which many daemons may have open.
#ifndef ATTUNE_SERVER_DAEMON_OPENED_STORE_H_
#define ATTUNE_SERVER_DAEMON_OPENED_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/served/v1/served.pb.h"
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
  std::string database = {};  // which one is shared: host, port, database, role, options
  // Where the shared database does not answer: what to answer from meanwhile, why (Unavailable, with a retry delay),
  // and what is to be tried until it succeeds, before which the store has nothing but cached code.
  std::unique_ptr<const served::v1::Copy> copy = nullptr;
  absl::Status away = absl::OkStatus();
  std::function<absl::Status()> prepare = nullptr;
};

// As whom the daemon of a data directory leases jobs of a store that it shares. Made when it is asked for first and
// kept there, so that the next start goes on with this one's jobs whatever the host is called by then, and no other
// daemon has the name.
absl::StatusOr<std::string> NameOfDaemon(const std::string& data_dir);

// `metrics` may be null, and lives longer. A shared database that does not answer is an error where --data_dir has no
// copy of what it served; one that refuses this daemon, or cannot be used by it, always is.
absl::StatusOr<OpenedStore> OpenStore(const Settings& settings, metrics::Store* metrics);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_OPENED_STORE_H_
