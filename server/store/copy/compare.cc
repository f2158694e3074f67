#include "server/store/copy/compare.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace attune::store::copy {
namespace {

absl::Status Difference(std::string what) {
  return absl::DataLossError(absl::StrCat("the copy is not the same: ", what));
}

absl::Status CompareColumns(const Table& table, const std::vector<Column>& columns, const Row& source,
                            const std::string& source_where, const Row& target, const std::string& target_where) {
  for (size_t i = table.keys; i < columns.size(); ++i) {
    if (source[i] == target[i]) continue;
    return Difference(absl::StrCat(NameOfRow(table, columns, source), ": ", columns[i].name, " is ",
                                   ToWords(columns[i], source[i]), " in ", source_where, " and ",
                                   ToWords(columns[i], target[i]), " in ", target_where));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> CompareRows(const Table& table, const std::vector<Column>& columns, NamedRows source,
                                    NamedRows target) {
  Row from;
  Row to;
  for (int64_t rows = 0;; ++rows) {
    const absl::StatusOr<bool> has_from = source.rows.Next(from);
    if (!has_from.ok()) return has_from.status();
    const absl::StatusOr<bool> has_to = target.rows.Next(to);
    if (!has_to.ok()) return has_to.status();
    if (!*has_from && !*has_to) return rows;
    const auto keys = static_cast<std::ptrdiff_t>(table.keys);
    const bool lacks = *has_from && (!*has_to || std::lexicographical_compare(from.begin(), from.begin() + keys,
                                                                              to.begin(), to.begin() + keys));
    const bool adds = *has_to && (!*has_from || std::lexicographical_compare(to.begin(), to.begin() + keys,
                                                                             from.begin(), from.begin() + keys));
    if (lacks || adds) {
      return Difference(absl::StrCat(NameOfRow(table, columns, lacks ? from : to), ": is in ",
                                     lacks ? source.where : target.where, ", and not in ",
                                     lacks ? target.where : source.where));
    }
    absl::Status same = CompareColumns(table, columns, from, source.where, to, target.where);
    if (!same.ok()) return same;
  }
}

}  // namespace attune::store::copy
