#include "server/worker/toolkit_files.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/toolkit.h"

namespace attune::worker {

std::vector<std::string> ToolkitFiles() {
  using device::cuda::DriverApi;
  static const absl::StatusOr<std::shared_ptr<const DriverApi>> driver = DriverApi::Load();
  const int version = driver.ok() ? (*driver)->Version().value_or(0) : 0;
  const auto search = device::cuda::ToolkitSearch::FromEnvironment(version);
  static const absl::StatusOr<std::shared_ptr<const device::cuda::NvrtcApi>> nvrtc = device::cuda::FindNvrtc(search);
  if (!nvrtc.ok()) return {};
  std::vector<std::string> files;
  if (auto headers = device::cuda::FindToolkitHeaders(search, (*nvrtc)->path()); headers.ok())
    files = *std::move(headers);
  // NVRTC's built-in functions are a library beside it.
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical((*nvrtc)->path(), error);
  if (!error) files.push_back(library.parent_path().string());
  // The candidates are looked for again by the compiler, by their names.
  for (const std::string& root : search.roots) {
    files.push_back(root + "/lib64");
    files.push_back(root + "/lib");
  }
  return files;
}

}  // namespace attune::worker
