// A statement put together piece by piece, each piece with the values that stand in it.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_SQL_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_SQL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/values.h"

namespace attune::store::postgresql {

class Sql {
 public:
  template <typename... Values>
  explicit Sql(absl::string_view text, const Values&... values) {
    Add(text, values...);
  }
  // Each question mark in `text` stands for the next of `values`: there are as many of these.
  template <typename... Values>
  Sql& Add(absl::string_view text, const Values&... values) {
    text_.append(text.data(), text.size());
    (parameters_.Add(values), ...);
    return *this;
  }

  // Another piece, with its values.
  Sql& Add(const Sql& piece);

  absl::StatusOr<Rows> Query(Connection& connection) const;
  absl::Status Execute(Connection& connection) const { return Query(connection).status(); }
  // How many rows were changed.
  absl::StatusOr<int64_t> Change(Connection& connection) const;
  // The first column of the first row; nothing without a row, or where it is null.
  absl::StatusOr<std::optional<int64_t>> FindInt(Connection& connection) const;
  // The first column of every row.
  absl::StatusOr<std::vector<int64_t>> Ints(Connection& connection) const;

 private:
  // With question marks; they are numbered when it is sent.
  std::string text_;
  Parameters parameters_;
};

// A list as a parameter: "= ANY (?::text::bigint[])".
std::string ArrayOf(const std::vector<int64_t>& numbers);
std::string ArrayOf(const std::vector<std::string>& texts);  // "= ANY (?::text::text[])"

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_SQL_H_
