#include "server/store/copy/rows.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/base/sha256.h"

namespace attune::store::copy {

std::string ToWords(const Column& column, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "null";
  if (const auto* number = std::get_if<int64_t>(&value)) return absl::StrCat(*number);
  if (const auto* real = std::get_if<double>(&value)) return absl::StrCat(*real);
  const std::string& bytes = std::get<std::string>(value);
  if (column.type != Type::kBytes) return Quoted(bytes);
  return absl::StrCat(bytes.size(), " bytes of SHA-256 ", Sha256(bytes).substr(0, 16), "...");
}

std::string NameOfRow(const Table& table, const std::vector<Column>& columns, const Row& row) {
  std::string name = table.name;
  for (size_t i = 0; i < table.keys; ++i)
    absl::StrAppend(&name, ", ", columns[i].name, " ", ToWords(columns[i], row[i]));
  return name;
}

}  // namespace attune::store::copy
