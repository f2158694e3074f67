// The table of blobs; what each function promises is said in blobs.h. Whoever removes rows is told of their files,
// which may be another row's, too.
#ifndef ATTUNE_SERVER_STORE_SQLITE_BLOBS_BLOB_ROWS_H_
#define ATTUNE_SERVER_STORE_SQLITE_BLOBS_BLOB_ROWS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/blobs.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// Rows that are gone.
struct RemovedRows {
  int64_t blobs = 0;
  int64_t bytes = 0;
  int64_t space = 0;  // by BlobSpace
  std::set<std::string> files;
};

// Makes the row of `blob`, whose other fields are set. `used_ns` is later than that of all others.
absl::Status InsertBlob(Connection& connection, const v1::Blob& blob, int64_t used_ns);
absl::StatusOr<std::vector<v1::Blob>> FindBlobs(Connection& connection, const BlobGroup& group);
// 0 when it is gone. Where `sha256` is not empty, only with this content.
absl::StatusOr<int64_t> IdOfBlob(Connection& connection, const v1::Blob& blob);
absl::StatusOr<Page<v1::Blob>> ListBlobs(Connection& connection, const BlobFilter& filter, int page_size,
                                         absl::string_view page_token);
absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> BlobTotals(Connection& connection, const BlobFilter& filter);

absl::Status RemoveBlob(Connection& connection, int64_t id, RemovedRows& removed);
absl::Status RemoveBlobs(Connection& connection, const BlobFilter& filter, RemovedRows& removed);
// Those used least recently, until at least so much space was freed.
absl::Status RemoveOldestBlobs(Connection& connection, int64_t space, RemovedRows& removed);
// Those whose file is none of `files`.
absl::Status RemoveBlobsWithoutFile(Connection& connection, const std::set<std::string>& files, RemovedRows& removed);

// When each was used, by row.
using BlobUses = std::map<int64_t, int64_t>;
absl::Status WriteBlobUses(Connection& connection, const BlobUses& uses);

absl::StatusOr<bool> IsFileOfBlob(Connection& connection, absl::string_view sha256);
absl::StatusOr<int64_t> SpaceOfBlobs(Connection& connection);
absl::StatusOr<int64_t> LastUseOfBlobs(Connection& connection);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_BLOBS_BLOB_ROWS_H_
