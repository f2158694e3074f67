#include "client/cpp/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace attune {
namespace {

absl::Status Failed(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " '", path, "'"));
}

absl::Status WriteAll(int fd, absl::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", path);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Makes a file beside `path` and gives its descriptor; `name` is then its path.
absl::StatusOr<int> CreateBeside(const std::string& path, std::string& name) {
  name = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return Failed("create a file beside", path);
  return fd;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed("open", path);
  const absl::Cleanup close_it = [fd] { close(fd); };
  std::string contents;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) return contents;
    contents.append(buffer, static_cast<size_t>(got));
  }
}

absl::Status ReplaceFile(const std::string& path, absl::string_view contents) {
  std::string temporary;
  const absl::StatusOr<int> fd = CreateBeside(path, temporary);
  if (!fd.ok()) return fd.status();
  absl::Cleanup discard = [&] { unlink(temporary.c_str()); };
  {
    const absl::Cleanup close_it = [&] { close(*fd); };
    if (absl::Status status = WriteAll(*fd, contents, path); !status.ok()) return status;
    if (fchmod(*fd, 0644) != 0 || fsync(*fd) != 0) return Failed("finish", path);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return Failed("replace", path);
  std::move(discard).Cancel();
  return absl::OkStatus();
}

absl::Status CheckReplaceable(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot replace '", path, "': it is a directory"));
  }
  std::string temporary;
  const absl::StatusOr<int> fd = CreateBeside(path, temporary);
  if (!fd.ok()) return fd.status();
  close(*fd);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

}  // namespace attune
