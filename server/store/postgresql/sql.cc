#include "server/store/postgresql/sql.h"

#include <cassert>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::store::postgresql {

Sql& Sql::Add(const Sql& piece) {
  text_.append(piece.text_);
  parameters_.Add(piece.parameters_);
  return *this;
}

absl::StatusOr<Rows> Sql::Query(Connection& connection) const {
  std::string text;
  size_t next = 0;
  for (const char character : text_) {
    if (character == '?') {
      absl::StrAppend(&text, "$", ++next);
    } else {
      text.push_back(character);
    }
  }
  assert(next == parameters_.size());
  return connection.Query(text, parameters_);
}

absl::StatusOr<int64_t> Sql::Change(Connection& connection) const {
  const absl::StatusOr<Rows> rows = Query(connection);
  if (!rows.ok()) return rows.status();
  return rows->changed();
}

absl::StatusOr<std::optional<int64_t>> Sql::FindInt(Connection& connection) const {
  absl::StatusOr<Rows> rows = Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step() || rows->IsNull(0)) return std::nullopt;
  return rows->Int(0);
}

absl::StatusOr<std::vector<int64_t>> Sql::Ints(Connection& connection) const {
  absl::StatusOr<Rows> rows = Query(connection);
  if (!rows.ok()) return rows.status();
  std::vector<int64_t> numbers;
  while (*rows->Step()) numbers.push_back(rows->Int(0));
  return numbers;
}

std::string ArrayOf(const std::vector<int64_t>& numbers) { return absl::StrCat("{", absl::StrJoin(numbers, ","), "}"); }

std::string ArrayOf(const std::vector<std::string>& texts) {
  std::string array = "{";
  for (const std::string& text : texts) {
    absl::StrAppend(&array, array.size() > 1 ? ",\"" : "\"");
    for (const char character : text) {
      if (character == '"' || character == '\\') array.push_back('\\');
      array.push_back(character);
    }
    array.push_back('"');
  }
  array.push_back('}');
  return array;
}

}  // namespace attune::store::postgresql
