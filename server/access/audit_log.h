// Who did what, and who was refused: a line of JSON for each call that changes something or is refused.
//
// In the data directory: audit.jsonl, and audit.1.jsonl (the newest) and so on, which it becomes when it is full.
#ifndef ATTUNE_SERVER_ACCESS_AUDIT_LOG_H_
#define ATTUNE_SERVER_ACCESS_AUDIT_LOG_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/method.h"
#include "server/access/principal.h"

namespace attune::access {

// The line of a call that ended with `outcome`, without its newline. `resource` is what it was about, in the caller's
// own words: a problem, an operation; of it and of the error's message at most 256 bytes are kept.
std::string AuditLine(absl::Time time, const Principal& principal, const Method& method, absl::string_view resource,
                      const absl::Status& outcome);

// Thread-safe. A thread of its own writes, so that nobody waits for the disk but those who change more than it takes.
class AuditLog {
 public:
  struct Limits {
    int64_t file_bytes = 16 << 20;
    int files = 8;          // the one that is written included
    size_t waiting = 4096;  // lines
  };
  // What is there is gone on with. The directory exists.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& directory, Limits limits);
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& directory) { return Open(directory, {}); }
  // Writes what waits.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // A call that changes something, or failed to. Waits while there is no room.
  void Changed(std::string line);
  // A call that was refused. Where there is no room it is left out, and counted in a line {"left_out": N}: a flood of
  // refused calls holds up nobody.
  void Refused(std::string line);

 private:
  AuditLog(std::string directory, Limits limits) : directory_(std::move(directory)), limits_(limits) {}

  std::string PathOf(int number) const;
  absl::Status OpenFile();
  void Run();
  // Of the writing thread: appends to the file, which is begun anew when it is full. A line that a full disk or a kill
  // has cut off stays a line of its own.
  absl::Status Write(std::string line);
  void Rotate();

  const std::string directory_;
  const Limits limits_;
  int fd_ = -1;        // the writing thread's
  int64_t bytes_ = 0;  // of the file
  bool torn_ = false;  // it ends within a line

  std::mutex mutex_;  // guards what follows up to the blank line
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  int64_t left_out_ = 0;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_AUDIT_LOG_H_
