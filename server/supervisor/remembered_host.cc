#include "server/supervisor/remembered_host.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/supervisor/probe.h"

namespace attune::supervisor {
namespace {

worker::v1::DescribeResponse ToMessage(const HostDescription& host) {
  worker::v1::DescribeResponse message;
  for (const v1::BackendStatus& backend : host.backends) *message.add_backends() = backend;
  for (const v1::Device& device : host.devices) *message.add_devices() = device;
  return message;
}

std::string BytesWithoutMemory(const HostDescription& host) {
  worker::v1::DescribeResponse message = ToMessage(host);
  for (v1::Device& device : *message.mutable_devices()) device.clear_memory_bytes();
  return message.SerializeAsString();
}

}  // namespace

std::string HostFileName(const WorkerOptions& options) {
  return absl::StrCat("host", options.emulate.empty() ? "" : "-", options.emulate, ".binpb");
}

std::string WriteHost(const HostDescription& host) { return ToMessage(host).SerializeAsString(); }

absl::StatusOr<HostDescription> ReadHost(absl::string_view bytes) {
  worker::v1::DescribeResponse message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("what was remembered of the host is damaged");
  }
  return ToHost(message);
}

bool SameHost(const HostDescription& a, const HostDescription& b) {
  return BytesWithoutMemory(a) == BytesWithoutMemory(b);
}

}  // namespace attune::supervisor
