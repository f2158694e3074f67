// What a host had when it was last probed, so that a daemon can answer before it has probed it again: opening drivers
// and compilers that are not in memory takes most of a second.
#ifndef ATTUNE_SERVER_WORKERS_REMEMBERED_HOST_H_
#define ATTUNE_SERVER_WORKERS_REMEMBERED_HOST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/workers/workers.h"

namespace attune::workers {

// The file of a data directory; a host under emulated limits has one of its own.
std::string HostFile(const std::string& data_dir, const WorkerOptions& options);

// The file is a serialised attune.worker.v1.DescribeResponse. Written beside itself and renamed: a reader sees the old
// one or the new one, whole. Losing it costs one slow start.
absl::Status RememberHost(const std::string& file, const HostDescription& host);
// NotFound when there is none, DataLoss when it is not such a message.
absl::StatusOr<HostDescription> RecallHost(const std::string& file);

// Whether answers for one are right for the other. Memory does not count: a virtual machine's grows as it is used.
bool SameHost(const HostDescription& a, const HostDescription& b);

}  // namespace attune::workers

#endif  // ATTUNE_SERVER_WORKERS_REMEMBERED_HOST_H_
