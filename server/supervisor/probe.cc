#include "server/supervisor/probe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/supervisor/connection.h"

namespace attune::supervisor {

std::vector<std::string> WorkerArguments(absl::string_view role, const WorkerOptions& options) {
  std::vector<std::string> arguments = {absl::StrCat("--role=", role), "--fd=3"};
  if (options.cage && role == "compile") arguments.emplace_back("--cage");
  if (!options.emulate.empty()) arguments.push_back(absl::StrCat("--emulate=", options.emulate));
  return arguments;
}

absl::StatusOr<HostDescription> ProbeHost(const WorkerOptions& options) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Start(
      options.executable, WorkerArguments("probe", options), Environment::kInherited, options.metrics);
  if (!connection.ok()) return connection.status();
  absl::StatusOr<worker::v1::DescribeResponse> description = (*connection)->Describe();
  if (!description.ok()) return description.status();
  return ToHost(*description);
}

bool RunsOnCpu(const v1::Device& device) {
  // A CPU runs work-items one after another.
  return device.backend() == v1::BACKEND_OPENCL && device.warp_size() == 1;
}

bool CanCage(const HostDescription& host) {
  return std::all_of(host.devices.begin(), host.devices.end(), [](const v1::Device& device) {
    return device.backend() != v1::BACKEND_OPENCL || RunsOnCpu(device);
  });
}

HostDescription ToHost(const worker::v1::DescribeResponse& description) {
  return {{description.backends().begin(), description.backends().end()},
          {description.devices().begin(), description.devices().end()}};
}

}  // namespace attune::supervisor
