// Keeps the copy of what a shared store serves (catalog/copy/served_copy.h) on the daemon's own disk.
#ifndef ATTUNE_SERVER_DAEMON_EDGE_COPY_KEEPER_H_
#define ATTUNE_SERVER_DAEMON_EDGE_COPY_KEEPER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "attune/served/v1/served.pb.h"
#include "server/store/store.h"

namespace attune {

// Where the copy is, in a data directory; the daemon's user alone reads it.
std::string CopyFileOf(const std::string& data_dir);

// The copy of `database` that is kept there; null when there is none, and, with a warning, when it cannot be used.
std::unique_ptr<const served::v1::Copy> ReadKeptCopy(const std::string& data_dir, const std::string& database);

// Thread-safe.
class CopyKeeper {
 public:
  struct Pace {
    absl::Duration least = absl::Seconds(10);  // between two copies
    absl::Duration most = absl::Minutes(10);   // so old is a copy while the store can be read, even if nothing changed
    int share = 20;                            // taking and writing copies takes one part in so many of the time
  };
  // Copies `store`, which lives longer, now and when something has changed. A copy that cannot be taken or written
  // leaves the one before, and is tried again.
  CopyKeeper(store::Store& store, std::string database, const std::string& data_dir, Pace pace);
  CopyKeeper(store::Store& store, std::string database, const std::string& data_dir)
      : CopyKeeper(store, std::move(database), data_dir, Pace()) {}

  void Changed();

 private:
  void Run(const std::stop_token& stop);
  absl::Status Keep();

  store::Store& store_;
  const std::string database_;
  const std::string file_;
  const Pace pace_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  bool changed_ = false;  // guarded by mutex_
  bool failed_ = false;   // the last try
  std::jthread thread_;   // last: started when all else is there
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_EDGE_COPY_KEEPER_H_
