// The command line of attune-worker, and asking it what the host has.
#ifndef ATTUNE_SERVER_SUPERVISOR_PROBE_H_
#define ATTUNE_SERVER_SUPERVISOR_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {

// Arguments for a worker of the role "compile", "device" or "probe".
std::vector<std::string> WorkerArguments(absl::string_view role, const WorkerOptions& options);

struct HostDescription {
  std::vector<v1::BackendStatus> backends;
  std::vector<v1::Device> devices;
};
// Asks a short-lived worker what the host has, so that the daemon itself never opens a driver.
absl::StatusOr<HostDescription> ProbeHost(const WorkerOptions& options);

// Whether the device is this host's CPU.
bool RunsOnCpu(const v1::Device& device);

// Whether workers can be caged here: not where OpenCL has a GPU, too, whose driver every worker that looks for OpenCL's
// devices opens. What that needs has not been tried.
bool CanCage(const HostDescription& host);

// What a probe answers, as the daemon has it.
HostDescription ToHost(const worker::v1::DescribeResponse& description);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_PROBE_H_
