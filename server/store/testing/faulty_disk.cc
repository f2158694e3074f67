#include "server/store/testing/faulty_disk.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attune::store {
namespace {

// System calls take no context: the state is the process's.
struct State {
  std::mutex mutex;
  std::string root;
  Fault fault;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t operations = 0;
  int64_t failed = 0;
  std::string victim;
};
std::atomic<State*> state{nullptr};

std::string PathOf(int fd) {
  char path[4096];
  const ssize_t size = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, static_cast<size_t>(size));
}

bool IsBelowRoot(const State& disk, absl::string_view path) {
  return absl::StartsWith(path, disk.root) && (path.size() == disk.root.size() || path[disk.root.size()] == '/');
}

// The fault that this operation is to fail by; errno is set.
std::optional<Fault> Failing(Fault::Operations operation, absl::string_view name, absl::string_view path) {
  State* const disk = state;
  if (disk == nullptr || !IsBelowRoot(*disk, path)) return std::nullopt;
  const std::lock_guard<std::mutex> lock(disk->mutex);
  if ((disk->fault.operations & operation) == 0) return std::nullopt;
  const int64_t number = disk->operations++;
  if (number < disk->first || (number > disk->first && !disk->fault.lasting)) return std::nullopt;
  if (disk->failed++ == 0) disk->victim = absl::StrCat(name, " ", path.substr(path.rfind('/') + 1));
  errno = disk->fault.error;
  return disk->fault;
}

std::optional<Fault> Failing(Fault::Operations operation, absl::string_view name, int fd) {
  if (state == nullptr) return std::nullopt;
  return Failing(operation, name, PathOf(fd));
}

bool IsBelowRoot(int fd) {
  const State* const disk = state;
  return disk != nullptr && IsBelowRoot(*disk, PathOf(fd));
}

int Open(const char* path, int flags, mode_t mode) {
  if (Failing(Fault::kOpen, "open", path).has_value()) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t Write(int fd, const void* bytes, size_t size, off_t offset, bool at_offset) {
  const auto write_it = [&](size_t count) {
    return at_offset ? syscall(SYS_pwrite64, fd, bytes, count, offset) : syscall(SYS_write, fd, bytes, count);
  };
  const std::optional<Fault> fault = Failing(Fault::kWrite, "write", fd);
  if (!fault.has_value()) return write_it(size);
  if (fault->torn) write_it(size / 2);
  errno = fault->error;
  return -1;
}

int Sync(const char* name, int fd) {
  if (Failing(Fault::kSync, name, fd).has_value()) return -1;
  return IsBelowRoot(fd) ? 0 : static_cast<int>(syscall(SYS_fsync, fd));
}

int Truncate(int fd, off_t size) {
  if (Failing(Fault::kTruncate, "truncate", fd).has_value()) return -1;
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}

int Control(int fd, int command, void* argument) {
  const bool locks = command == F_SETLK || command == F_SETLKW;
  if (locks && static_cast<const struct flock*>(argument)->l_type != F_UNLCK &&
      Failing(Fault::kLock, "lock", fd).has_value()) {
    return -1;
  }
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}

}  // namespace

FaultyDisk::FaultyDisk(std::string root) {
  auto* disk = new State;
  disk->root = std::move(root);
  state = disk;
}

FaultyDisk::~FaultyDisk() { delete state.exchange(nullptr); }

void FaultyDisk::Fail(const Fault& fault, int64_t nth) {
  State* const disk = state;
  const std::lock_guard<std::mutex> lock(disk->mutex);
  disk->fault = fault;
  disk->first = nth;
  disk->operations = disk->failed = 0;
  disk->victim.clear();
}

void FaultyDisk::Heal() {
  State* const disk = state;
  const std::lock_guard<std::mutex> lock(disk->mutex);
  disk->first = std::numeric_limits<int64_t>::max();
  disk->fault.operations = 0;
}

int64_t FaultyDisk::operations() const {
  State* const disk = state;
  const std::lock_guard<std::mutex> lock(disk->mutex);
  return disk->operations;
}

int64_t FaultyDisk::failed() const {
  State* const disk = state;
  const std::lock_guard<std::mutex> lock(disk->mutex);
  return disk->failed;
}

std::string FaultyDisk::victim() const {
  State* const disk = state;
  const std::lock_guard<std::mutex> lock(disk->mutex);
  return disk->victim;
}

}  // namespace attune::store

// What the C library exports and SQLite, libstdc++ and the store call: the program's own come first.
#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return attune::store::Open(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return attune::store::Open(path, flags, mode);
}
int mkdir(const char* path, mode_t mode) noexcept {
  if (attune::store::Failing(attune::store::Fault::kOpen, "mkdir", path).has_value()) return -1;
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}
ssize_t read(int fd, void* bytes, size_t size) {
  if (attune::store::Failing(attune::store::Fault::kRead, "read", fd).has_value()) return -1;
  return syscall(SYS_read, fd, bytes, size);
}
ssize_t pread64(int fd, void* bytes, size_t size, off64_t offset) {
  if (attune::store::Failing(attune::store::Fault::kRead, "read", fd).has_value()) return -1;
  return syscall(SYS_pread64, fd, bytes, size, offset);
}
ssize_t write(int fd, const void* bytes, size_t size) { return attune::store::Write(fd, bytes, size, 0, false); }
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return attune::store::Write(fd, bytes, size, offset, true);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return attune::store::Write(fd, bytes, size, offset, true);
}
int fsync(int fd) { return attune::store::Sync("fsync", fd); }
int fdatasync(int fd) { return attune::store::Sync("fdatasync", fd); }
int ftruncate(int fd, off_t size) noexcept { return attune::store::Truncate(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept { return attune::store::Truncate(fd, size); }
int rename(const char* from, const char* to) noexcept {
  if (attune::store::Failing(attune::store::Fault::kRename, "rename", to).has_value()) return -1;
  return static_cast<int>(syscall(SYS_rename, from, to));
}
int unlink(const char* path) noexcept {
  if (attune::store::Failing(attune::store::Fault::kRename, "unlink", path).has_value()) return -1;
  return static_cast<int>(syscall(SYS_unlink, path));
}
int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return attune::store::Control(fd, command, argument);
}
int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return attune::store::Control(fd, command, argument);
}

}  // extern "C"
#pragma GCC visibility pop
