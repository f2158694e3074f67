// What every table's code shares: resource names, timestamps, texts stored once.
#ifndef ATTUNE_SERVER_STORE_SQLITE_NAMES_H_
#define ATTUNE_SERVER_STORE_SQLITE_NAMES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
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

// DataLoss when the bytes are no such message. Texts that are not UTF-8, which earlier versions stored, are cleaned.
absl::Status Parse(absl::string_view bytes, absl::string_view what, google::protobuf::Message& message);

// Whether `status` is Parse's: what was written is not what was meant, and no later reading will change that. DataLoss
// of SQLite's may pass, as when a disk could not read a page.
bool IsDamagedRow(const absl::Status& status);

// True when `status` says that this one row is damaged, which is logged: a listing goes on without it.
bool SkipDamaged(const absl::Status& status, absl::string_view table, int64_t id);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_NAMES_H_
