#include "server/worker/cage.h"

#include <cstdlib>
#include <iterator>

#include "absl/strings/str_split.h"
#include "server/worker/landlock.h"

namespace attune::worker {
namespace {

// Folders of the system that hold programs' files and nobody's data. /sys and the files of /proc say what processors,
// caches and memory there are, and which of them this process may use.
constexpr const char* kSystem[] = {"/lib",
                                   "/lib64",
                                   "/usr/lib",
                                   "/usr/lib64",
                                   "/usr/local/lib",
                                   "/usr/local/lib64",
                                   "/usr/share/pocl",
                                   "/usr/local/share/pocl",
                                   "/usr/share/locale",
                                   "/etc/OpenCL",
                                   "/etc/ld.so.cache",
                                   "/etc/localtime",
                                   "/sys",
                                   "/proc/cpuinfo",
                                   "/proc/meminfo",
                                   "/proc/self/cgroup",
                                   "/proc/self/cpuset",
                                   "/proc/self/maps",
                                   "/proc/self/mounts",
                                   "/dev/urandom"};
// Folders and files, with colons between.
constexpr const char* kVariables[] = {"LD_LIBRARY_PATH", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH"};

// PoCL links each kernel with the system's linker. The loader's name is the architecture's.
constexpr const char* kPrograms[] = {"/usr/bin/ld", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};

}  // namespace

std::vector<std::string> SystemFiles() {
  std::vector<std::string> files(std::begin(kSystem), std::end(kSystem));
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    for (absl::string_view path : absl::StrSplit(value, ':', absl::SkipEmpty())) files.emplace_back(path);
  }
  return files;
}

absl::Status Confine(const Walls& walls) {
  if (absl::Status status = LimitResources(walls.limits); !status.ok()) return status;
  VisibleFiles files{.readable = SystemFiles(),
                     .executable = {std::begin(kPrograms), std::end(kPrograms)},
                     .writable = walls.scratch,
                     .devices = {"/dev/null"}};
  files.readable.insert(files.readable.end(), walls.toolkit.begin(), walls.toolkit.end());
  return SeeOnly(files);
}

}  // namespace attune::worker
