// Stored messages, and rows that are damaged: what every database's code does with them.
#ifndef ATTUNE_SERVER_STORE_DAMAGED_ROWS_H_
#define ATTUNE_SERVER_STORE_DAMAGED_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "google/protobuf/message.h"

namespace attune::store {

// DataLoss when the bytes are no such message. Texts that are not UTF-8, which earlier versions stored, are cleaned.
absl::Status Parse(absl::string_view bytes, absl::string_view what, google::protobuf::Message& message);

// Whether `status` is Parse's: what was written is not what was meant, and no later reading will change that. DataLoss
// of a database's may pass, as when a disk could not read a page.
bool IsDamagedRow(const absl::Status& status);

// True when `status` says that this one row is damaged, which is logged: a listing goes on without it.
bool SkipDamaged(const absl::Status& status, absl::string_view table, int64_t id);

// What lists have in the place of a job that is damaged.
v1::Operation DamagedOperation(absl::string_view name, const absl::Status& status);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_DAMAGED_ROWS_H_
