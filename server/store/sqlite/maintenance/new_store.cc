#include "server/store/sqlite/maintenance/new_store.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/files.h"

namespace attune::store::sqlite {
namespace {

constexpr const char* kDatabaseFiles[] = {"attune.db", "attune.db-wal", "attune.db-shm"};

absl::Status CheckWithoutStore(const std::string& directory, absl::string_view maker) {
  for (const char* name : kDatabaseFiles) {
    const std::string file = absl::StrCat(directory, "/", name);
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(file, " exists: a ", maker, " replaces nothing; name a directory without a store"));
  }
  return absl::OkStatus();
}

}  // namespace

NewStore::NewStore(std::string directory, absl::string_view unfinished, LockFile lock)
    : directory_(std::move(directory)), file_(absl::StrCat(directory_, "/", unfinished)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<NewStore>> NewStore::Begin(const std::string& directory, absl::string_view unfinished,
                                                          absl::string_view maker) {
  if (absl::Status status = MakeDirectories(directory); !status.ok()) return status;
  absl::StatusOr<LockFile> lock = LockFile::Acquire(absl::StrCat(directory, "/attune.lock"));
  if (!lock.ok()) return lock.status();
  if (absl::Status status = CheckWithoutStore(directory, maker); !status.ok()) return status;
  std::unique_ptr<NewStore> store(new NewStore(directory, unfinished, *std::move(lock)));  // the constructor is private
  store->RemoveUnfinished();                                                               // what a crash left
  return store;
}

NewStore::~NewStore() {
  if (!finished_) RemoveUnfinished();
}

void NewStore::RemoveUnfinished() const {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink(absl::StrCat(file_, suffix).c_str());
}

absl::Status NewStore::Finish() {
  if (absl::Status status = Rename(file_, absl::StrCat(directory_, "/attune.db")); !status.ok()) return status;
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace attune::store::sqlite
