// Values as they go to PostgreSQL and come from it: in its binary formats, so that no byte is escaped or lost.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_VALUES_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_VALUES_H_

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::store::postgresql {

struct Blob {
  absl::string_view bytes;
};

// Of one statement: $1, $2 and so on, as bigint, boolean, double precision, text and bytea; an empty optional is NULL.
class Parameters {
 public:
  void Add(int64_t value);
  void Add(int value) { Add(int64_t{value}); }
  void Add(bool value);
  void Add(double value);
  void Add(absl::string_view text);
  void Add(const std::string& text) { Add(absl::string_view(text)); }
  void Add(const char* text) { Add(absl::string_view(text)); }
  void Add(Blob blob);
  template <typename T>
  void Add(const std::optional<T>& value) {
    Add(value.value_or(T{}));
    if (!value.has_value()) values_.back().reset();
  }

  void Add(const Parameters& others);
  size_t size() const { return values_.size(); }

  // Sends `sql` with them. False: see PQerrorMessage.
  bool Send(PGconn* connection, const std::string& sql) const;

 private:
  void Add(Oid type, std::string bytes);

  std::vector<Oid> types_;
  std::vector<std::optional<std::string>> values_;
};

struct ResultDeleter {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultHandle = std::unique_ptr<PGresult, ResultDeleter>;

// What a statement gave, a row at a time.
class Rows {
 public:
  explicit Rows(ResultHandle result) : result_(std::move(result)) {}

  // To the first row, then the next. False after the last. Never an error: all rows are here.
  absl::StatusOr<bool> Step();
  int64_t size() const { return PQntuples(result_.get()); }
  int64_t changed() const;  // by INSERT, UPDATE, DELETE
  absl::string_view command() const { return PQcmdStatus(result_.get()); }

  // Columns of the row stepped to, from 0. Those that are null are 0, false and empty. The views live as long as this.
  bool IsNull(int column) const { return PQgetisnull(result_.get(), row_, column) != 0; }
  int64_t Int(int column) const;  // smallint, integer, bigint; of boolean 0 and 1
  bool Bool(int column) const;
  double Real(int column) const;  // double precision
  absl::string_view Text(int column) const { return Bytes(column); }
  absl::string_view Bytes(int column) const;

 private:
  ResultHandle result_;
  int row_ = -1;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_VALUES_H_
