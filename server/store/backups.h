// The backups of a store: the directory that --backup_dir names, with a directory for each.
#ifndef ATTUNE_SERVER_STORE_BACKUPS_H_
#define ATTUNE_SERVER_STORE_BACKUPS_H_

#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/backup/v1/manifest.pb.h"
#include "server/store/store.h"

namespace attune::store {

inline constexpr char kManifestFile[] = "backup.textproto";
inline constexpr size_t kMostBackups = 1000;

struct Backup {
  std::string id;    // its directory's name
  std::string path;  // its directory
  backup::v1::Manifest manifest;
};

// Thread-safe; one backup is made at a time. Nobody else writes to the directory while one is.
class Backups {
 public:
  // `store` lives longer. An empty directory: every call is FailedPrecondition.
  Backups(Store* store, std::string directory) : store_(store), directory_(std::move(directory)) {}

  // Makes one, which has its name only once it is whole, checked and on disk. An empty id is the time, as in
  // 20261122T073015Z. InvalidArgument when the id is not 1 to 64 of letters, digits, '-', '_' and '.' that begin with a
  // letter or a digit; AlreadyExists; ResourceExhausted when the disk is full or there are kMostBackups.
  absl::StatusOr<Backup> Create(absl::string_view id);
  // Newest first. Directories without a manifest are none and are passed over.
  absl::StatusOr<Page<Backup>> List(int page_size, absl::string_view page_token) const;

 private:
  absl::Status CheckEnabled() const;
  std::string NewId() const;

  Store* const store_;
  const std::string directory_;
  std::mutex making_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_BACKUPS_H_
