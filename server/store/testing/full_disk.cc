#include "server/store/testing/full_disk.h"

#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace attune::store {
namespace {

// System calls take no context: the state is the process's, as the table of calls is.
std::atomic<bool> is_full{false};
std::atomic<int> refusals{0};

bool Refuse() {
  if (!is_full) return false;
  ++refusals;
  errno = ENOSPC;
  return true;
}

ssize_t Write(int fd, const void* bytes, size_t size) { return Refuse() ? -1 : write(fd, bytes, size); }

ssize_t PositionedWrite(int fd, const void* bytes, size_t size, off_t offset) {
  return Refuse() ? -1 : pwrite(fd, bytes, size, offset);
}

void Replace(const char* name, sqlite3_syscall_ptr call) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  vfs->xSetSystemCall(vfs, name, call);  // null: SQLite's own again; unknown names are no error here
}

}  // namespace

FullDisk::FullDisk() {
  refusals = 0;
  Replace("write", reinterpret_cast<sqlite3_syscall_ptr>(Write));
  Replace("pwrite", reinterpret_cast<sqlite3_syscall_ptr>(PositionedWrite));
  Replace("pwrite64", reinterpret_cast<sqlite3_syscall_ptr>(PositionedWrite));
}

FullDisk::~FullDisk() {
  Set(false);
  for (const char* name : {"write", "pwrite", "pwrite64"}) Replace(name, nullptr);
}

void FullDisk::Set(bool full) { is_full = full; }

int FullDisk::refused() const { return refusals; }

}  // namespace attune::store
