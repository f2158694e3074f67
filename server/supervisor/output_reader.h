// What a worker writes to its standard output and error, as lines for the daemon's log.
#ifndef ATTUNE_SERVER_SUPERVISOR_OUTPUT_READER_H_
#define ATTUNE_SERVER_SUPERVISOR_OUTPUT_READER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::supervisor {

// Called with one line at a time, without its newline and never empty.
using LineSink = std::function<void(absl::string_view line)>;

// Cuts a stream of bytes into lines. What a line has beyond kMostBytes is left out, so that memory is bounded whatever
// is written.
class LineSplitter {
 public:
  static constexpr size_t kMostBytes = 1000;

  explicit LineSplitter(LineSink sink) : sink_(std::move(sink)) {}
  void Add(absl::string_view bytes);
  // The rest is a line too.
  void Finish();

 private:
  const LineSink sink_;
  std::string line_;
  bool cut_ = false;
};

// Reads a pipe on a thread of its own, as fast as it is filled: who writes never waits for the log.
class OutputReader {
 public:
  // Takes over `fd`, the pipe's reading end.
  static absl::StatusOr<std::unique_ptr<OutputReader>> Start(int fd, LineSink sink);
  // Brings what was written so far, and ends even when somebody still holds the other end.
  ~OutputReader();
  OutputReader(const OutputReader&) = delete;
  OutputReader& operator=(const OutputReader&) = delete;

 private:
  OutputReader(int fd, int stop, LineSink sink);
  void Run();

  const int fd_;
  const int stop_;  // an eventfd
  LineSplitter lines_;
  std::thread thread_;
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_OUTPUT_READER_H_
