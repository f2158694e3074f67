#include "server/supervisor/output_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attune::supervisor {
namespace {

constexpr size_t kBlock = 16 << 10;
// Of what is read once the process is gone: a pipe holds no more, and who keeps filling it is none of ours.
constexpr size_t kMostLeft = 64 << 10;

}  // namespace

void LineSplitter::Add(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    const size_t room = kMostBytes - line_.size();
    absl::StrAppend(&line_, part.substr(0, room));
    cut_ = cut_ || part.size() > room;
    if (end == absl::string_view::npos) return;
    Finish();
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::Finish() {
  if (absl::EndsWith(line_, "\r")) line_.pop_back();
  if (cut_) line_ += "...";
  if (!line_.empty()) sink_(line_);
  line_.clear();
  cut_ = false;
}

absl::StatusOr<std::unique_ptr<OutputReader>> OutputReader::Start(int fd, LineSink sink) {
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "reading a worker's output");
    close(fd);
    if (stop >= 0) close(stop);
    return status;
  }
  return std::unique_ptr<OutputReader>(new OutputReader(fd, stop, std::move(sink)));
}

OutputReader::OutputReader(int fd, int stop, LineSink sink)
    : fd_(fd), stop_(stop), lines_(std::move(sink)), thread_([this] { Run(); }) {}

OutputReader::~OutputReader() {
  eventfd_write(stop_, 1);
  thread_.join();
  close(fd_);
  close(stop_);
}

void OutputReader::Run() {
  char block[kBlock];
  bool open = true;
  bool stopped = false;
  size_t left = kMostLeft;
  while (open && left > 0) {
    pollfd entries[] = {{fd_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (!stopped && poll(entries, 2, -1) < 0) continue;  // interrupted
    stopped = stopped || entries[1].revents != 0;
    const ssize_t size = read(fd_, block, sizeof block);
    if (size > 0) lines_.Add({block, static_cast<size_t>(size)});
    if (stopped) left -= std::min(left, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    const bool nothing = size < 0 && (errno == EAGAIN || errno == EINTR);
    open = size > 0 || (nothing && !stopped);
  }
  lines_.Finish();
}

}  // namespace attune::supervisor
