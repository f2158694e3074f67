// What a host had when it was last probed, so that a daemon can answer before it has probed it again: opening drivers
// and compilers that are not in memory takes most of a second.
#ifndef ATTUNE_SERVER_SUPERVISOR_REMEMBERED_HOST_H_
#define ATTUNE_SERVER_SUPERVISOR_REMEMBERED_HOST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {

// The name of the file that remembers a host; one under emulated limits has a file of its own.
std::string HostFileName(const WorkerOptions& options);

// The file's bytes, a serialised attune.worker.v1.DescribeResponse, and back: DataLoss when they are not one.
std::string WriteHost(const HostDescription& host);
absl::StatusOr<HostDescription> ReadHost(absl::string_view bytes);

// Whether answers for one are right for the other. Memory does not count: a virtual machine's grows as it is used.
bool SameHost(const HostDescription& a, const HostDescription& b);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_REMEMBERED_HOST_H_
