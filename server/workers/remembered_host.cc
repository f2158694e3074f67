#include "server/workers/remembered_host.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace attune::workers {
namespace {

worker::v1::DescribeResponse ToMessage(const HostDescription& host) {
  worker::v1::DescribeResponse message;
  for (const v1::BackendStatus& backend : host.backends) *message.add_backends() = backend;
  for (const v1::Device& device : host.devices) *message.add_devices() = device;
  return message;
}

}  // namespace

std::string HostFile(const std::string& data_dir, const WorkerOptions& options) {
  return absl::StrCat(data_dir, "/host", options.emulate.empty() ? "" : "-", options.emulate, ".binpb");
}

absl::Status RememberHost(const std::string& file, const HostDescription& host) {
  const std::string fresh = file + ".new";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  ToMessage(host).SerializeToOstream(&out);
  out.close();
  if (!out) return absl::UnavailableError(absl::StrCat("cannot write ", fresh));
  std::error_code error;
  std::filesystem::rename(fresh, file, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot rename ", fresh, ": ", error.message()));
  return absl::OkStatus();
}

absl::StatusOr<HostDescription> RecallHost(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("there is no ", file));
  worker::v1::DescribeResponse message;
  if (!message.ParseFromIstream(&in)) return absl::DataLossError(absl::StrCat(file, " is damaged"));
  return HostDescription{{message.backends().begin(), message.backends().end()},
                         {message.devices().begin(), message.devices().end()}};
}

bool SameHost(const HostDescription& a, const HostDescription& b) {
  worker::v1::DescribeResponse one = ToMessage(a);
  worker::v1::DescribeResponse other = ToMessage(b);
  for (v1::Device& device : *one.mutable_devices()) device.clear_memory_bytes();
  for (v1::Device& device : *other.mutable_devices()) device.clear_memory_bytes();
  return one.SerializeAsString() == other.SerializeAsString();
}

}  // namespace attune::workers
