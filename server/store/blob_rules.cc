#include "server/store/blob_rules.h"

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune::store {

absl::Status CheckBlob(const v1::Blob& blob, int64_t limit) {
  absl::string_view missing;
  if (blob.file().empty()) missing = "file";
  if (blob.key().empty()) missing = "key";
  if (blob.namespace_().empty()) missing = "namespace";
  if (blob.principal().empty()) missing = "principal";
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("blob: ", missing, " is not set; it must be"));
  }
  if (limit == 0)
    return absl::FailedPreconditionError(
        "the server keeps no blobs (--blob_limit=0, or its store has no place for files)");
  const int64_t space = BlobSpace(static_cast<int64_t>(blob.data().size()));
  if (space <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("data has ", blob.data().size(), " bytes, which take ", space,
                                                   "; the server keeps ", limit, " of all blobs (--blob_limit)"));
}

absl::Status NoBlob(const v1::Blob& blob) {
  return absl::NotFoundError(absl::StrCat("blob ", Quoted(blob.file()), " under ", Quoted(blob.key()), " is gone"));
}

std::string NameOf(const BlobFilter& filter) {
  return absl::StrCat("blobs\n", filter.principal, "\n", filter.cache, "\n", filter.key, "\n", filter.reader);
}

}  // namespace attune::store
