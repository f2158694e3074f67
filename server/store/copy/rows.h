// Rows on their way from one database to another.
#ifndef ATTUNE_SERVER_STORE_COPY_ROWS_H_
#define ATTUNE_SERVER_STORE_COPY_ROWS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/copy/tables.h"

namespace attune::store::copy {

// Null, a number (of a bool 0 or 1), or the bytes of a text or a message.
using Value = std::variant<std::monostate, int64_t, double, std::string>;
using Row = std::vector<Value>;

class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual absl::StatusOr<bool> Next(Row& row) = 0;  // false after the last
};

// For messages: a number, a text in quotes, the size and hash of bytes.
std::string ToWords(const Column& column, const Value& value);
// "trials, id 17"; `columns` are those of the row.
std::string NameOfRow(const Table& table, const std::vector<Column>& columns, const Row& row);

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_ROWS_H_
