// Whether the store can write, as the log tells it: once when it no longer can, and once when it can again.
#ifndef ATTUNE_SERVER_STORE_WRITE_HEALTH_H_
#define ATTUNE_SERVER_STORE_WRITE_HEALTH_H_

#include <atomic>

#include "absl/status/status.h"

namespace attune::store {

// Thread-safe.
class WriteHealth {
 public:
  // Whether a write failed for the sake of the disk or the database, and not for its own.
  static bool IsTrouble(const absl::Status& status);

  // What a write came to. Errors that are the request's own say nothing of the disk.
  void Note(const absl::Status& status);
  bool broken() const { return broken_; }

 private:
  std::atomic<bool> broken_ = false;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_WRITE_HEALTH_H_
