#include "server/access/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"

namespace attune::access {
namespace {

constexpr size_t kMostText = 256;

using Json = nlohmann::ordered_json;

// Whatever callers send: what is not UTF-8 becomes U+FFFD.
std::string Text(const Json& json) { return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace); }

std::string Start(absl::string_view text) { return std::string(text.substr(0, kMostText)); }

}  // namespace

std::string AuditLine(absl::Time time, const Principal& principal, const Method& method, absl::string_view resource,
                      const absl::Status& outcome) {
  Json line = {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone())},
               {"principal", principal.name},
               {"role", std::string(RoleName(principal.role))},
               {"method", std::string(method.name)},
               {"resource", Start(resource)},
               {"outcome", absl::StatusCodeToString(outcome.code())}};
  if (!outcome.ok()) line["error"] = Start(outcome.message());
  return Text(line);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& directory, Limits limits) {
  std::unique_ptr<AuditLog> log(new AuditLog(directory, limits));
  if (absl::Status opened = log->OpenFile(); !opened.ok()) return opened;
  log->thread_ = std::thread([log = log.get()] { log->Run(); });
  return log;
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (fd_ >= 0) close(fd_);
}

void AuditLog::Changed(std::string line) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < limits_.waiting; });
  waiting_.push_back(std::move(line));
  changed_.notify_all();
}

void AuditLog::Refused(std::string line) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= limits_.waiting) {
    ++left_out_;
    return;
  }
  waiting_.push_back(std::move(line));
  changed_.notify_all();
}

std::string AuditLog::PathOf(int number) const {
  return number == 0 ? absl::StrCat(directory_, "/audit.jsonl") : absl::StrCat(directory_, "/audit.", number, ".jsonl");
}

absl::Status AuditLog::OpenFile() {
  const std::string path = PathOf(0);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat info = {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write the audit log ", path, ": ", strerror(errno)));
  }
  bytes_ = info.st_size;
  char last = '\n';
  torn_ = bytes_ > 0 && pread(fd_, &last, 1, bytes_ - 1) == 1 && last != '\n';
  return absl::OkStatus();
}

void AuditLog::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::deque<std::string> lines = std::exchange(waiting_, {});
    const int64_t left_out = std::exchange(left_out_, 0);
    changed_.notify_all();
    lock.unlock();
    absl::Status written;
    if (left_out > 0) written = Write(Text({{"left_out", left_out}}));
    for (const std::string& line : lines) {
      if (written.ok()) written = Write(line);
    }
    if (!written.ok()) LogError("the audit log lacks lines", {{"reason", written.message()}});
    lock.lock();
  }
}

absl::Status AuditLog::Write(std::string line) {
  line.push_back('\n');
  if (bytes_ > 0 && bytes_ + static_cast<int64_t>(line.size()) > limits_.file_bytes) Rotate();
  if (fd_ < 0) {
    if (absl::Status opened = OpenFile(); !opened.ok()) return opened;
  }
  if (std::exchange(torn_, false)) line.insert(0, "\n");
  for (absl::string_view bytes = line; !bytes.empty();) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status error = absl::UnavailableError(absl::StrCat(PathOf(0), ": ", strerror(errno)));
      close(std::exchange(fd_, -1));  // opened anew, it is seen whether a part of the line is there
      return error;
    }
    bytes_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

void AuditLog::Rotate() {
  close(fd_);
  fd_ = -1;
  for (int number = limits_.files - 1; number > 0; --number) {
    rename(PathOf(number - 1).c_str(), PathOf(number).c_str());  // there may be fewer yet
  }
}

}  // namespace attune::access
