// The command line of attune-worker, and asking it what the host has.
#ifndef ATTUNE_SERVER_SUPERVISOR_PROBE_H_
#define ATTUNE_SERVER_SUPERVISOR_PROBE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/supervisor/workers.h"

namespace attune::supervisor {

// Arguments for a worker of the role "compile", "device" or "probe".
std::vector<std::string> WorkerArguments(absl::string_view role, const WorkerOptions& options);

// What a probe answers, as the daemon has it.
HostDescription ToHost(const worker::v1::DescribeResponse& description);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_PROBE_H_
