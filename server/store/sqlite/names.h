// What every table's code shares: resource names, timestamps, texts stored once.
#ifndef ATTUNE_SERVER_STORE_SQLITE_NAMES_H_
#define ATTUNE_SERVER_STORE_SQLITE_NAMES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/store/damaged_rows.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

inline constexpr absl::string_view kTrials = "trials/";
inline constexpr absl::string_view kIncumbents = "incumbents/";
inline constexpr absl::string_view kRetimings = "retimings/";
inline constexpr absl::string_view kSubmissions = "submissions/";

// 123 for "trials/123"; nothing for what no Store has ever named.
std::optional<int64_t> IdOf(absl::string_view collection, absl::string_view name);

int64_t ToNanoseconds(const google::protobuf::Timestamp& time);
google::protobuf::Timestamp FromNanoseconds(int64_t nanoseconds);
google::protobuf::Timestamp Now();

// The row's id; the row is made when missing. For the writer.
absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text);
absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name);  // an id or a uuid
absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_NAMES_H_
