// Texts that are stored once: problems, devices, classes.
#ifndef ATTUNE_SERVER_STORE_SQLITE_NAMES_H_
#define ATTUNE_SERVER_STORE_SQLITE_NAMES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/damaged_rows.h"
#include "server/store/rows/names.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// The row's id; the row is made when missing. For the writer.
absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text);
absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name);  // an id or a uuid
absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_NAMES_H_
