// Makes SQLite's writes in this process fail as on a full disk, for tests.
#ifndef ATTUNE_SERVER_STORE_TESTING_FULL_DISK_H_
#define ATTUNE_SERVER_STORE_TESTING_FULL_DISK_H_

namespace attune::store {

// Install one before SQLite is used by other threads; while it is on, the system calls that SQLite writes by return
// ENOSPC, which it turns into SQLITE_FULL.
class FullDisk {
 public:
  FullDisk();
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  void Set(bool full);
  int refused() const;  // writes that have failed so
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FULL_DISK_H_
