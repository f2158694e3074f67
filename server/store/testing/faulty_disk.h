// File operations of this process that fail, for tests: the Nth below one directory, or all from the Nth on.
#ifndef ATTUNE_SERVER_STORE_TESTING_FAULTY_DISK_H_
#define ATTUNE_SERVER_STORE_TESTING_FAULTY_DISK_H_

#include <cstdint>
#include <string>

namespace attune::store {

// What of the system's calls fails, and how. Each is an operation on a file or directory below the root.
struct Fault {
  enum Operations : unsigned {
    kOpen = 1,       // open, mkdir
    kRead = 2,       // read, pread
    kWrite = 4,      // write, pwrite
    kSync = 8,       // fsync, fdatasync
    kTruncate = 16,  // ftruncate
    kRename = 32,    // rename, unlink
    kLock = 64,      // fcntl's locks
    kChange = kOpen | kWrite | kSync | kTruncate | kRename,
  };
  unsigned operations = kChange;
  int error = 0;         // errno
  bool torn = false;     // a write writes the first half of its bytes before it fails
  bool lasting = false;  // from the Nth operation on all fail, until Heal; else that one alone
};

// The program that links this has its calls of open, read, write, fsync, rename and the like go through here, those of
// SQLite, libstdc++ and the store's own code alike. Syncs below the root succeed without syncing: nobody cuts the
// power, and thousands of runs take no minutes. One at a time in a process; Fail and Heal at any time.
class FaultyDisk {
 public:
  explicit FaultyDisk(std::string root);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // From now on the operation number `nth` of those that `fault` names fails; the first is 0.
  void Fail(const Fault& fault, int64_t nth);
  void Heal();

  int64_t operations() const;  // those that the fault names, since Fail
  int64_t failed() const;      // those of them that have failed
  std::string victim() const;  // the first of these: "write attune.db-wal"
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FAULTY_DISK_H_
