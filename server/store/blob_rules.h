// What every implementation of BlobStore holds blobs to.
#ifndef ATTUNE_SERVER_STORE_BLOB_RULES_H_
#define ATTUNE_SERVER_STORE_BLOB_RULES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/store/blobs.h"

namespace attune::store {

// What a stored blob cannot be without, and whether it is within the limit.
absl::Status CheckBlob(const v1::Blob& blob, int64_t limit);
absl::Status NoBlob(const v1::Blob& blob);
// Tells the listing of a filter from others.
std::string NameOf(const BlobFilter& filter);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_BLOB_RULES_H_
