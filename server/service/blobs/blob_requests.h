// What requests about blobs must be like, and whom they are about. Sizes are checked before (limits.h).
#ifndef ATTUNE_SERVER_SERVICE_BLOBS_BLOB_REQUESTS_H_
#define ATTUNE_SERVER_SERVICE_BLOBS_BLOB_REQUESTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/v1/blob.pb.h"
#include "server/access/principal.h"
#include "server/store/blobs.h"

namespace attune::service {

// InvalidArgument names the field, the value and what is allowed.
absl::Status Validate(const v1::GetBlobsRequest& request);
absl::Status Validate(const v1::PutBlobRequest& request);

// The principal that a request names: "self" is the caller.
std::string OwnerOf(absl::string_view named, const access::Principal& caller);
// Its owner may, whoever does where it is shared, and admins.
bool MayRead(const v1::Blob& blob, const access::Principal& caller);
// What a listing shows the caller.
store::BlobFilter FilterFor(const v1::ListBlobsRequest& request, const access::Principal& caller);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_BLOBS_BLOB_REQUESTS_H_
