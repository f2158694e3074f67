// Looks now and then what the store takes on disk, for metrics: on a thread of its own, which a hanging disk may stop.
#ifndef ATTUNE_SERVER_DAEMON_STORE_FILES_WATCH_H_
#define ATTUNE_SERVER_DAEMON_STORE_FILES_WATCH_H_

#include <string>
#include <thread>

#include "absl/time/time.h"
#include "server/metrics/store.h"
#include "server/store/backups.h"

namespace attune {

// What is there now. `backups` may be off.
metrics::StoreFiles LookAtStoreFiles(const std::string& data_dir, const store::Backups& backups);

class StoreFilesWatch {
 public:
  // Looks at once and then every `period`, until the end of its life. All that it is given lives longer.
  StoreFilesWatch(const std::string& data_dir, const store::Backups& backups, metrics::Store& metrics,
                  absl::Duration period = absl::Seconds(15));

 private:
  std::jthread thread_;
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_STORE_FILES_WATCH_H_
