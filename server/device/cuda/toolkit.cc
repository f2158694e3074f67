#include "server/device/cuda/toolkit.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::device::cuda {
namespace {

constexpr const char* kLibraryNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
constexpr char kHeader[] = "cuda_fp16.h";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> LibraryCandidates(const ToolkitSearch& search) {
  if (!search.nvrtc.empty()) return {search.nvrtc};
  std::vector<std::string> candidates(std::begin(kLibraryNames), std::end(kLibraryNames));
  for (const std::string& root : search.roots) {
    for (const char* folder : {"lib64", "lib"}) {
      for (const char* name : kLibraryNames) candidates.push_back(absl::StrCat(root, "/", folder, "/", name));
    }
  }
  return candidates;
}

std::vector<std::string> HeaderCandidates(const ToolkitSearch& search, const std::string& nvrtc_path) {
  if (!search.include.empty()) return {search.include};
  std::vector<std::string> candidates;
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(nvrtc_path, error);
  if (!error) {
    const std::filesystem::path folder = library.parent_path();
    candidates.push_back((folder.parent_path() / "include").string());
    // Wheels of CUDA 12: nvidia/cuda_nvrtc/lib beside nvidia/cuda_runtime/include.
    candidates.push_back((folder.parent_path().parent_path() / "cuda_runtime" / "include").string());
  }
  for (const std::string& root : search.roots) candidates.push_back(absl::StrCat(root, "/include"));
  candidates.emplace_back("/usr/include");
  return candidates;
}

std::string Dotted(int driver_version) { return absl::StrCat(driver_version / 1000, ".", driver_version % 1000 / 10); }

}  // namespace

ToolkitSearch ToolkitSearch::FromEnvironment(int driver_version) {
  ToolkitSearch search;
  search.nvrtc = Environment("ATTUNE_NVRTC");
  search.include = Environment("ATTUNE_CUDA_INCLUDE");
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (std::string root = Environment(name); !root.empty()) search.roots.push_back(std::move(root));
  }
  search.roots.emplace_back("/usr/local/cuda");
  search.driver_version = driver_version;
  return search;
}

int ChooseVersion(const std::vector<std::pair<int, int>>& versions, int driver_version) {
  int chosen = -1;
  for (size_t i = 0; i < versions.size(); ++i) {
    const bool loadable = driver_version == 0 || versions[i].first <= driver_version / 1000;
    if (loadable && (chosen < 0 || versions[i] > versions[static_cast<size_t>(chosen)])) chosen = static_cast<int>(i);
  }
  return chosen;
}

absl::StatusOr<std::shared_ptr<const NvrtcApi>> FindNvrtc(const ToolkitSearch& search) {
  std::vector<std::shared_ptr<const NvrtcApi>> found;
  std::vector<std::pair<int, int>> versions;
  std::vector<std::string> names;
  std::string first_error;
  for (const std::string& candidate : LibraryCandidates(search)) {
    absl::StatusOr<std::shared_ptr<const NvrtcApi>> api = NvrtcApi::Load(candidate);
    if (!api.ok()) {
      if (first_error.empty() || absl::IsUnavailable(api.status())) first_error = std::string(api.status().message());
      continue;
    }
    versions.emplace_back((*api)->major(), (*api)->minor());
    names.push_back(absl::StrCat((*api)->major(), ".", (*api)->minor(), " (", (*api)->path(), ")"));
    found.push_back(*std::move(api));
  }
  if (found.empty()) {
    return absl::UnavailableError(absl::StrCat("no NVRTC on this host: ", first_error,
                                               "; set ATTUNE_NVRTC to the library's path or CUDA_HOME to a toolkit"));
  }
  const int chosen = ChooseVersion(versions, search.driver_version);
  if (chosen < 0) {
    return absl::UnavailableError(absl::StrCat("the driver loads code of CUDA ", Dotted(search.driver_version),
                                               " and older, and NVRTC here is ", absl::StrJoin(names, ", ")));
  }
  return found[static_cast<size_t>(chosen)];
}

absl::StatusOr<std::vector<std::string>> FindToolkitHeaders(const ToolkitSearch& search,
                                                            const std::string& nvrtc_path) {
  const std::vector<std::string> candidates = HeaderCandidates(search, nvrtc_path);
  for (const std::string& candidate : candidates) {
    std::error_code error;
    const std::filesystem::path folder = candidate;
    if (!std::filesystem::is_regular_file(folder / kHeader, error)) continue;
    // Wheels of CUDA 12 keep crt/mma.h with nvcc.
    const std::filesystem::path compiler = folder.parent_path().parent_path() / "cuda_nvcc" / "include";
    std::vector<std::string> folders = {candidate};
    if (std::filesystem::is_directory(compiler, error)) folders.push_back(compiler.string());
    return folders;
  }
  return absl::UnavailableError(absl::StrCat("no CUDA headers on this host: ", kHeader, " is not in ",
                                             absl::StrJoin(candidates, ", "),
                                             "; set ATTUNE_CUDA_INCLUDE to the directory that has it"));
}

}  // namespace attune::device::cuda
