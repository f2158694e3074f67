#include "server/daemon/store_files_watch.h"

#include <filesystem>
#include <stop_token>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/base/pause.h"
#include "server/base/proto_time.h"

namespace attune {

metrics::StoreFiles LookAtStoreFiles(const std::string& data_dir, const store::Backups& backups) {
  metrics::StoreFiles files;
  std::error_code error;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const auto bytes = std::filesystem::file_size(absl::StrCat(data_dir, "/attune.db", suffix), error);
    if (!error) files.database_bytes += static_cast<int64_t>(bytes);
  }
  const std::filesystem::space_info space = std::filesystem::space(data_dir, error);
  if (!error) {
    files.free_bytes = static_cast<int64_t>(space.available);
    files.filesystem_bytes = static_cast<int64_t>(space.capacity);
  }
  const auto newest = backups.List(1, "");
  if (newest.ok() && !newest->items.empty()) {
    const backup::v1::Manifest& manifest = newest->items.front().manifest;
    files.newest_backup = TimeOf(manifest.create_time());
    files.newest_backup_bytes = manifest.bytes();
  }
  return files;
}

StoreFilesWatch::StoreFilesWatch(const std::string& data_dir, const store::Backups& backups, metrics::Store& metrics,
                                 absl::Duration period)
    : thread_([=, &backups, &metrics](const std::stop_token& stop) {
        do {
          metrics.SetFiles(LookAtStoreFiles(data_dir, backups));
        } while (Pause(stop, period));
      }) {}

}  // namespace attune
