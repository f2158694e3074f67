#include "server/store/files_in_place.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attune::store {
namespace {

constexpr char kAdvice[] =
    "nothing is written to it; stop the daemon, put the file back or restore a backup, and start it";

}  // namespace

FilesInPlace::FilesInPlace(const std::string& database) {
  database_.path = database;
  log_.path = absl::StrCat(database, "-wal");
  Check().IgnoreError();
}

absl::Status FilesInPlace::Check() {
  absl::Status status = Check(database_, /*may_shrink=*/false);
  status.Update(Check(log_, /*may_shrink=*/true));
  return status;
}

absl::Status FilesInPlace::Check(File& file, bool may_shrink) {
  struct stat now = {};
  if (stat(file.path.c_str(), &now) != 0) {
    if (!file.seen) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(file.path, " was moved or removed while it was in use: ", kAdvice));
  }
  if (!file.seen) {
    file.seen = true;
    file.device = now.st_dev;
    file.inode = now.st_ino;
  }
  if (now.st_dev != file.device || now.st_ino != file.inode) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.path, " was replaced by another file while it was in use: ", kAdvice));
  }
  if (!may_shrink && now.st_size < file.least_size) {
    return absl::FailedPreconditionError(absl::StrCat(file.path, " was cut from ", file.least_size, " to ", now.st_size,
                                                      " bytes while it was in use: ", kAdvice));
  }
  file.least_size = std::max(file.least_size, now.st_size);
  return absl::OkStatus();
}

}  // namespace attune::store
