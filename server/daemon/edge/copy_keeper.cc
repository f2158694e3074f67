#include "server/daemon/edge/copy_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"
#include "server/base/deadline.h"
#include "server/base/log.h"
#include "server/base/pause.h"
#include "server/catalog/copy/served_copy.h"
#include "server/store/files.h"

namespace attune {

std::string CopyFileOf(const std::string& data_dir) { return absl::StrCat(data_dir, "/served.copy"); }

std::unique_ptr<const served::v1::Copy> ReadKeptCopy(const std::string& data_dir, const std::string& database) {
  const std::string file = CopyFileOf(data_dir);
  const absl::StatusOr<std::string> bytes = store::ReadFile(file);
  if (absl::IsNotFound(bytes.status())) return nullptr;
  absl::StatusOr<served::v1::Copy> copy = bytes.ok() ? catalog::CopyFromFile(*bytes, database) : bytes.status();
  if (copy.ok()) return std::make_unique<const served::v1::Copy>(*std::move(copy));
  LogWarning("the copy of what was served is not used", {{"file", file}, {"reason", copy.status().message()}});
  return nullptr;
}

CopyKeeper::CopyKeeper(store::Store& store, std::string database, const std::string& data_dir, Pace pace)
    : store_(store),
      database_(std::move(database)),
      file_(CopyFileOf(data_dir)),
      pace_(pace),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void CopyKeeper::Changed() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_ = true;
  }
  woken_.notify_all();
}

void CopyKeeper::Run(const std::stop_token& stop) {
  do {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      changed_ = false;
    }
    const absl::Duration begin = SteadyNow();
    const absl::Status kept = Keep();
    const absl::Duration took = SteadyNow() - begin;
    if (!kept.ok() && !std::exchange(failed_, true)) {
      LogWarning("what is served cannot be copied: a start without the database would know of an earlier time",
                 {{"file", file_}, {"error", kept.message()}});
    }
    if (kept.ok()) failed_ = false;
    if (!Pause(stop, std::max(pace_.least, pace_.share * took))) return;
    std::unique_lock<std::mutex> lock(mutex_);
    woken_.wait_until(lock, stop, After(pace_.most), [this] { return changed_ || failed_; });
  } while (!stop.stop_requested());
}

absl::Status CopyKeeper::Keep() {
  const absl::StatusOr<served::v1::Copy> copy = catalog::TakeCopy(store_, database_, absl::Now());
  if (!copy.ok()) return copy.status();
  const absl::StatusOr<std::string> bytes = catalog::CopyToFile(*copy);
  return bytes.ok() ? store::ReplaceFile(file_, *bytes, store::ReadableBy::kOwner) : bytes.status();
}

}  // namespace attune
