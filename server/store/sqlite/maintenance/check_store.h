// A look at a store that changes nothing in it.
#ifndef ATTUNE_SERVER_STORE_SQLITE_CHECK_STORE_H_
#define ATTUNE_SERVER_STORE_SQLITE_CHECK_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace attune::store {

struct StoreReport {
  bool exists = false;  // else a daemon makes it
  std::string in_use;   // by whom; then nothing else is known
  int64_t version = 0;  // of the schema
  int64_t newest = 0;   // that this program knows, to which a daemon brings it
  int64_t trials = 0;
};

// Opens the database in `directory` for reading, and sees whether it is attune's, of a known version and undamaged
// (PRAGMA quick_check, foreign keys). A store in use is left alone, because nobody else may open it (docs/store.md). An
// error says what would keep a daemon from starting.
absl::StatusOr<StoreReport> CheckStore(const std::string& directory);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_SQLITE_CHECK_STORE_H_
