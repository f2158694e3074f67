// The modes that attune opens its database in.
#ifndef ATTUNE_SERVER_STORE_SQLITE_DATABASE_H_
#define ATTUNE_SERVER_STORE_SQLITE_DATABASE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// The only connection that may commit and checkpoint; made when missing, brought to the newest schema.
absl::StatusOr<std::unique_ptr<Connection>> OpenWriter(const std::string& file);

// Reads beside the writer, which must be open already and stay open longer, or the caller holds attune.lock; never
// checkpoints.
absl::StatusOr<std::unique_ptr<Connection>> OpenReader(const std::string& file);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_DATABASE_H_
