// Files of other programs' caches as JSON.
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {

Json BlobJson(const v1::Blob& blob) {
  return {{"type", "blob"},
          {"principal", blob.principal()},
          {"namespace", blob.namespace_()},
          {"key", blob.key()},
          {"file", blob.file()},
          {"shared", blob.shared()},
          {"bytes", blob.bytes()},
          {"sha256", blob.sha256()},
          {"create_time", Iso(blob.create_time())},
          {"use_time", Iso(blob.use_time())}};
}

Json BlobTotalJson(const v1::ListBlobsResponse::Total& total, int64_t limit_bytes) {
  return {{"type", "blob_total"},   {"principal", total.principal()}, {"namespace", total.namespace_()},
          {"blobs", total.blobs()}, {"bytes", total.bytes()},         {"limit_bytes", limit_bytes}};
}

Json DeletedBlobsJson(const v1::DeleteBlobsResponse& deleted) {
  return {{"type", "deleted_blobs"}, {"blobs", deleted.blobs()}, {"bytes", deleted.bytes()}};
}

}  // namespace attune::cli
