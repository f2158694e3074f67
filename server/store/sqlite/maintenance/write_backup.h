// A copy of a store that another can be made of (restore.h): a directory with attune.db and artifacts/.
#ifndef ATTUNE_SERVER_STORE_SQLITE_WRITE_BACKUP_H_
#define ATTUNE_SERVER_STORE_SQLITE_WRITE_BACKUP_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/store/artifact_files.h"
#include "server/store/sqlite/readers.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

// Store::Backup of the database `file`, which `readers` read. Writers go on meanwhile.
absl::StatusOr<BackupContents> WriteBackup(const std::string& file, Readers& readers, const ArtifactFiles& artifacts,
                                           const std::string& directory);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_WRITE_BACKUP_H_
