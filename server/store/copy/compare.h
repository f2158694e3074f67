// Whether two stores hold the same rows.
#ifndef ATTUNE_SERVER_STORE_COPY_COMPARE_H_
#define ATTUNE_SERVER_STORE_COPY_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/copy/rows.h"

namespace attune::store::copy {

struct NamedRows {
  std::string where;  // for messages
  RowReader& rows;    // in the order of their keys
};

// How many rows both have. DataLoss names the table, the key and the column of the first difference.
absl::StatusOr<int64_t> CompareRows(const Table& table, const std::vector<Column>& columns, NamedRows source,
                                    NamedRows target);

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_COMPARE_H_
