// SQLite's store in a directory, as a copy reads or fills it.
#ifndef ATTUNE_SERVER_STORE_COPY_SQLITE_SIDE_H_
#define ATTUNE_SERVER_STORE_COPY_SQLITE_SIDE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/copy/side.h"

namespace attune::store::copy {

// The store there is, which stays as it is. NotFound without one; FailedPrecondition while a daemon has it open, and
// when it is of another schema version than this program's.
absl::StatusOr<std::unique_ptr<Side>> OpenSqlite(const std::string& directory);

// The one that is to be there. FailedPrecondition when there is one, or the directory is in use.
absl::StatusOr<std::unique_ptr<EmptySide>> MakeSqlite(const std::string& directory);

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_SQLITE_SIDE_H_
