// A store on PostgreSQL, as a copy reads or fills it.
#ifndef ATTUNE_SERVER_STORE_COPY_POSTGRESQL_SIDE_H_
#define ATTUNE_SERVER_STORE_COPY_POSTGRESQL_SIDE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/copy/side.h"

namespace attune::store::copy {

struct OpenedPostgresql {
  std::unique_ptr<Side> side;
  std::vector<std::string> live_hosts;  // that write to it meanwhile
};

// The store that `target`, a connection string, names, as it is at one moment: a transaction that reads alone.
// FailedPrecondition when attune was never there, it is of another schema version than this program's, or has two
// unfinished jobs that SQLite would have as one.
absl::StatusOr<OpenedPostgresql> OpenPostgresql(const std::string& target);

// An empty one, in a transaction: nobody sees of it before Commit, and no daemon can write to the tables meanwhile.
// Tables are made where there are none. FailedPrecondition when it has rows, a daemon has it open, or it is of another
// schema version; PermissionDenied when the role may not fill it.
absl::StatusOr<std::unique_ptr<EmptySide>> MakePostgresql(const std::string& target);

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_POSTGRESQL_SIDE_H_
