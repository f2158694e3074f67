#include "server/store/blob_rules.h"
#include "server/store/blobs.h"

namespace attune::store {
namespace {

class KeepsNone : public BlobStore {
 public:
  int64_t limit() const override { return 0; }
  absl::StatusOr<v1::Blob> Put(const v1::Blob& blob) override { return CheckBlob(blob, limit()); }
  absl::StatusOr<std::vector<v1::Blob>> Find(const BlobGroup&) override { return std::vector<v1::Blob>(); }
  absl::StatusOr<std::string> Read(const v1::Blob& blob) override { return NoBlob(blob); }
  absl::StatusOr<Page<v1::Blob>> List(const BlobFilter&, int, absl::string_view) override { return Page<v1::Blob>(); }
  absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> Totals(const BlobFilter&) override {
    return std::vector<v1::ListBlobsResponse::Total>();
  }
  absl::StatusOr<RemovedBlobs> Delete(const BlobFilter&) override { return RemovedBlobs(); }
};

}  // namespace

BlobStore& NoBlobs() {
  static auto& none = *new KeepsNone;
  return none;
}

}  // namespace attune::store
