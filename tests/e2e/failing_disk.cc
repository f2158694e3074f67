// Preloaded into a process (LD_PRELOAD): while the file that $ATTUNE_FAILING_DISK names holds an errno, a native int64
// that is not 0, what the process writes or syncs in the directory beside it, "data", fails with that.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace {

struct Disk {
  std::string directory;
  const volatile int64_t* error = nullptr;
};

Disk OpenDisk() {
  const char* const path = getenv("ATTUNE_FAILING_DISK");
  if (path == nullptr) return {};
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) abort();
  return {std::string(path, strrchr(path, '/') - path) + "/data/", static_cast<const int64_t*>(mapped)};
}

bool Fails(int fd) {
  static const Disk& disk = *new Disk(OpenDisk());  // outlives the last writes
  const int64_t error = disk.error == nullptr ? 0 : *disk.error;
  if (error == 0) return false;
  char path[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  if (size < 0 || std::string(path, static_cast<size_t>(size)).rfind(disk.directory, 0) != 0) return false;
  errno = static_cast<int>(error);
  return true;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) { return Fails(fd) ? -1 : syscall(SYS_write, fd, bytes, size); }
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return Fails(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, size, offset);
}
int fsync(int fd) { return Fails(fd) ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return Fails(fd) ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd)); }

}  // extern "C"
