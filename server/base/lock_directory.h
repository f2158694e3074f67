// The directory that the locks of devices stand in: whether they may (nobody but its owner, this user or root, and its
// group may write to it; anyone else could keep the devices from being used), and who holds them.
#ifndef ATTUNE_SERVER_BASE_LOCK_DIRECTORY_H_
#define ATTUNE_SERVER_BASE_LOCK_DIRECTORY_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attune {

// Of what was found at `path`. FailedPrecondition says what is wrong, and begins "lock_dir '...'".
absl::Status JudgeLockDirectory(const std::string& path, const struct stat& info);

// Of what is at `path` now; OK when nothing is.
absl::Status CheckLockDirectory(const std::string& path);

// The file of a device's lock, by its UUID, or its id where it has none.
std::string LockFileName(absl::string_view uuid, absl::string_view id);
// Who but this process has the open file locked: "process 12", or what can be said of one that this process cannot see;
// empty when nobody has.
std::string LockHolder(int fd);
absl::Status InUseError(absl::string_view id, absl::string_view model, absl::string_view holder,
                        absl::string_view path);
// InUseError when a process other than this one holds the device's lock; OK where that cannot be seen. Takes no lock,
// and must not be called by a process that holds it: that would give it up.
absl::Status CheckUnlocked(absl::string_view directory, absl::string_view uuid, absl::string_view id,
                           absl::string_view model);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_LOCK_DIRECTORY_H_
