// Gives memory that the daemon no longer uses back to the system now and then. What calls have once needed stays with
// malloc in pages between what is in use: in half an hour of 256 clients, with as much in use all the while, the daemon
// grew by 14 MiB (docs/benchmarks/2026-11-27-soak-kills-costs.md).
#ifndef ATTUNE_SERVER_DAEMON_MEMORY_TRIM_H_
#define ATTUNE_SERVER_DAEMON_MEMORY_TRIM_H_

#include <thread>

#include "absl/time/time.h"

namespace attune {

class MemoryTrim {
 public:
  // Every `period`, until the end of its life.
  explicit MemoryTrim(absl::Duration period = absl::Minutes(1));

 private:
  std::jthread thread_;
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_MEMORY_TRIM_H_
