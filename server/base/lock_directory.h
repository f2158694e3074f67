// Whether the locks of devices may stand in a directory: nobody but its owner (this user or root) and its group may
// write to it; anyone else could keep the devices from being used.
#ifndef ATTUNE_SERVER_BASE_LOCK_DIRECTORY_H_
#define ATTUNE_SERVER_BASE_LOCK_DIRECTORY_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"

namespace attune {

// Of what was found at `path`. FailedPrecondition says what is wrong, and begins "lock_dir '...'".
absl::Status JudgeLockDirectory(const std::string& path, const struct stat& info);

// Of what is at `path` now; OK when nothing is.
absl::Status CheckLockDirectory(const std::string& path);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_LOCK_DIRECTORY_H_
