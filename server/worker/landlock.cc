#include "server/worker/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/base/cage_kernel.h"

namespace attune::worker {
namespace {

// Of later versions than the headers of Debian 12: linux/landlock.h of Linux 6.12.
constexpr uint64_t kTruncate = uint64_t{1} << 14;         // version 3
constexpr uint64_t kIoctlOnDevice = uint64_t{1} << 15;    // version 5
constexpr uint64_t kBindTcp = 1, kConnectTcp = 2;         // version 4
constexpr uint64_t kScopeSockets = 1, kScopeSignals = 2;  // version 6

// struct landlock_ruleset_attr as version 6 has it; earlier kernels take its beginning.
struct Ruleset {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scope = 0;
};
constexpr size_t kSizeOfVersion1 = 8, kSizeOfVersion4 = 16, kSizeOfVersion6 = 24;

constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              LANDLOCK_ACCESS_FS_READ_FILE | kTruncate | kIoctlOnDevice;
constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kExecute = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
constexpr uint64_t kDevice = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
// No sockets, pipes, devices and symbolic links.
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                            LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REFER | kTruncate;

Ruleset RulesetOf(int version) {
  Ruleset ruleset;
  ruleset.files = (uint64_t{LANDLOCK_ACCESS_FS_MAKE_SYM} << 1) - 1;  // version 1: all up to this one
  if (version >= 2) ruleset.files |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) ruleset.files |= kTruncate;
  if (version >= 5) ruleset.files |= kIoctlOnDevice;
  if (version >= 4) ruleset.network = kBindTcp | kConnectTcp;
  if (version >= 6) ruleset.scope = kScopeSockets | kScopeSignals;
  return ruleset;
}

size_t SizeOf(int version) { return version >= 6 ? kSizeOfVersion6 : version >= 4 ? kSizeOfVersion4 : kSizeOfVersion1; }

absl::Status Allow(int ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return absl::OkStatus();
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  const absl::Cleanup close_path = [fd] { close(fd); };
  struct stat info = {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, path);
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = S_ISDIR(info.st_mode) ? access : access & kOfFiles;
  rule.parent_fd = fd;
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("landlock_add_rule of ", path));
}

absl::Status AllowAll(int ruleset, const std::vector<std::string>& paths, uint64_t access) {
  for (const std::string& path : paths) {
    if (absl::Status status = Allow(ruleset, path, access); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SeeOnly(const VisibleFiles& files) {
  const int version = LandlockVersion();
  if (version == 0) return absl::UnavailableError("this kernel has no Landlock, or has it switched off");
  const Ruleset attributes = RulesetOf(version);
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, SizeOf(version), 0));
  if (ruleset < 0) return absl::ErrnoToStatus(errno, "landlock_create_ruleset");
  const absl::Cleanup close_ruleset = [ruleset] { close(ruleset); };
  const auto allow = [&](const std::vector<std::string>& paths, uint64_t access) {
    return AllowAll(ruleset, paths, access & attributes.files);
  };
  if (absl::Status status = allow(files.readable, kRead); !status.ok()) return status;
  if (absl::Status status = allow(files.executable, kExecute); !status.ok()) return status;
  if (absl::Status status = allow(files.writable, kWrite); !status.ok()) return status;
  if (absl::Status status = allow(files.devices, kDevice); !status.ok()) return status;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return absl::ErrnoToStatus(errno, "PR_SET_NO_NEW_PRIVS");
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "landlock_restrict_self");
}

}  // namespace attune::worker
