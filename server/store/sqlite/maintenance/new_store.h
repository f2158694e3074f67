// A store that is being made in a directory without one: its database has its name last.
#ifndef ATTUNE_SERVER_STORE_SQLITE_NEW_STORE_H_
#define ATTUNE_SERVER_STORE_SQLITE_NEW_STORE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/lock_file.h"

namespace attune::store::sqlite {

// Until Finish there is no store in the directory, however the process ends.
class NewStore {
 public:
  // Makes the directory when it is missing, and locks it. FailedPrecondition when it has a store, or is in use.
  // `maker` is "restore" or "copy", for messages. The database is `unfinished` until Finish: what a crash left of that
  // name is removed.
  static absl::StatusOr<std::unique_ptr<NewStore>> Begin(const std::string& directory, absl::string_view unfinished,
                                                         absl::string_view maker);
  ~NewStore();
  NewStore(const NewStore&) = delete;
  NewStore& operator=(const NewStore&) = delete;

  // The database for now; not made yet.
  const std::string& file() const { return file_; }
  // Gives it its name.
  absl::Status Finish();

 private:
  NewStore(std::string directory, absl::string_view unfinished, LockFile lock);
  void RemoveUnfinished() const;

  const std::string directory_;
  const std::string file_;
  const LockFile lock_;
  bool finished_ = false;
};

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_NEW_STORE_H_
