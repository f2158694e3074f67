// How worker processes are started, and how long they may take.
#ifndef ATTUNE_SERVER_SUPERVISOR_WORKER_OPTIONS_H_
#define ATTUNE_SERVER_SUPERVISOR_WORKER_OPTIONS_H_

#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "server/metrics/workers.h"

namespace attune::supervisor {

// How long a call may take that asks for `most_seconds` at most (0: it does not ask), where all are given `timeout`.
inline absl::Duration AtMost(double most_seconds, absl::Duration timeout) {
  return most_seconds > 0 ? std::min(timeout, absl::Seconds(most_seconds)) : timeout;
}

struct WorkerOptions {
  std::string executable;               // path of attune-worker
  metrics::Workers* metrics = nullptr;  // told what they do; lives longer
  int compile_workers = 0;              // 0: one a core
  absl::Duration compile_timeout = absl::Seconds(120);
  absl::Duration trial_timeout = absl::Seconds(10);
  absl::Duration prepare_timeout = absl::Seconds(120);
  absl::Duration play_off_timeout = absl::Seconds(60);
  std::string lock_dir;         // of the device locks; created when missing
  std::string emulate;          // passed on as --emulate
  bool verify_on_host = false;  // passed on to device workers as --verify=host
  // Compile workers, and workers of devices that are this host's CPU, are caged (docs/design.md, The cage).
  bool cage = false;
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_WORKER_OPTIONS_H_
