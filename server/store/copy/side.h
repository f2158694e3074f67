// A store as a copy reads it, and as a copy fills it.
#ifndef ATTUNE_SERVER_STORE_COPY_SIDE_H_
#define ATTUNE_SERVER_STORE_COPY_SIDE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/copy/rows.h"
#include "server/store/copy/tables.h"

namespace attune::store::copy {

// Bytes that are named by their SHA-256: SQLite's store has them as files, PostgreSQL's in tables of their own.
enum class Contents { kCode, kBlobs };

struct Content {
  std::string sha256;
  int64_t used_ns = 0;  // of code
};

// One thread at a time. Everything is read as it was at one moment.
class Side {
 public:
  virtual ~Side() = default;

  virtual Database database() const = 0;
  virtual const std::string& where() const = 0;  // for messages; without a password

  // Rows as a store on `to` has them, in the order of their keys. One reader at a time.
  virtual absl::StatusOr<int64_t> Count(const Table& table, Database to) = 0;
  virtual absl::StatusOr<std::unique_ptr<RowReader>> Read(const Table& table, Database to) = 0;

  // By their hashes: those that rows name, gone or not, and of code all that is there.
  virtual absl::StatusOr<std::vector<Content>> List(Contents contents) = 0;
  // NotFound and DataLoss, in one line: it is gone, or no longer has its hash.
  virtual absl::StatusOr<std::string> ReadContent(Contents contents, absl::string_view sha256) = 0;
};

// A store that is not there, or is empty, until Commit, however the process ends. What is not committed leaves contents
// at most, as files that no row names; the next copy uses them.
class EmptySide : public Side {
 public:
  // The table's rows are in the order of their keys. An error names the row that cannot be stored.
  virtual absl::Status Write(const Table& table, const std::vector<Row>& rows) = 0;
  virtual absl::Status WriteContent(Contents contents, const Content& content, const std::string& bytes) = 0;
  virtual absl::Status Commit() = 0;
};

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_SIDE_H_
