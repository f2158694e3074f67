#include "server/store/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::store {
namespace {

std::string Parent(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError(errno, "write", path);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FileError(int error, absl::string_view action, absl::string_view path) {
  const std::string what =
      absl::StrCat("cannot ", action, " ", path, ": ", std::error_code(error, std::generic_category()).message());
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat("disk full: ", what));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(what);
    case ENOENT:
      return absl::NotFoundError(what);
    default:
      return absl::UnavailableError(what);
  }
}

absl::Status MakeDirectories(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return Sync(Parent(path));
  const int error = errno;
  if (error == EEXIST) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path, " is in the way: it is not a directory"));
  }
  const std::string parent = Parent(path);
  if (error != ENOENT || parent == path) return FileError(error, "make directory", path);
  if (absl::Status status = MakeDirectories(parent); !status.ok()) return status;
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return FileError(errno, "make directory", path);
  return Sync(parent);
}

absl::Status MakeNewDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return Sync(Parent(path));
  if (errno == EEXIST) return absl::AlreadyExistsError(absl::StrCat(path, " exists"));
  return FileError(errno, "make directory", path);
}

absl::Status CheckSpace(const std::string& path, int64_t bytes) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  if (error) return FileError(error.value(), "look at the free space of", path);
  const uintmax_t spare = std::min<uintmax_t>(space.capacity / 50, uintmax_t{1} << 30);
  const uintmax_t needed = static_cast<uintmax_t>(bytes) + spare;
  if (space.available >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("disk full: ", path, " has ", space.available,
                                                   " bytes free; needed are ", bytes, " and ", spare, " to spare"));
}

absl::Status CopyFile(const std::string& from, const std::string& to) {
  const FileDescriptor source(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source.valid()) return FileError(errno, "open", from);
  const FileDescriptor target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!target.valid()) return FileError(errno, "create", to);
  std::string block(1 << 20, '\0');
  for (;;) {
    const ssize_t got = read(source.get(), block.data(), block.size());
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", from);
    absl::Status status = WriteAll(target.get(), absl::string_view(block.data(), static_cast<size_t>(got)), to);
    if (!status.ok()) return status;
  }
  if (fsync(target.get()) != 0) return FileError(errno, "sync", to);
  return absl::OkStatus();
}

absl::Status Sync(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FileError(errno, "open", path);
  if (fsync(file.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

absl::Status WriteNewFile(const std::string& path, absl::string_view bytes, ReadableBy readers) {
  const mode_t mode = readers == ReadableBy::kOwner ? 0600 : 0644;
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.valid()) return FileError(errno, "create", path);
  absl::Status status = WriteAll(file.get(), bytes, path);
  if (status.ok() && fsync(file.get()) != 0) status = FileError(errno, "sync", path);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

absl::Status ReplaceFile(const std::string& path, absl::string_view bytes, ReadableBy readers) {
  const std::string fresh = absl::StrCat(path, ".new");
  unlink(fresh.c_str());  // what a crash left
  if (absl::Status status = WriteNewFile(fresh, bytes, readers); !status.ok()) return status;
  return Rename(fresh, path);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FileError(errno, "open", path);
  std::string bytes;
  char block[64 * 1024];
  for (;;) {
    const ssize_t got = read(file.get(), block, sizeof block);
    if (got == 0) return bytes;
    if (got > 0) {
      bytes.append(block, static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return FileError(errno, "read", path);
    }
  }
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return FileError(errno, "rename to", to);
  return Sync(Parent(to));
}

}  // namespace attune::store
