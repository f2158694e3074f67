// Blobs in memory, for tests: what blobs.h says, without files.
#ifndef ATTUNE_SERVER_STORE_TESTING_FAKE_BLOBS_H_
#define ATTUNE_SERVER_STORE_TESTING_FAKE_BLOBS_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "server/store/blobs.h"

namespace attune::store {

class FakeBlobs : public BlobStore {
 public:
  void SetLimit(int64_t limit);

  int64_t limit() const override;
  absl::StatusOr<v1::Blob> Put(const v1::Blob& blob) override;
  absl::StatusOr<std::vector<v1::Blob>> Find(const BlobGroup& group) override;
  absl::StatusOr<std::string> Read(const v1::Blob& blob) override;
  absl::StatusOr<Page<v1::Blob>> List(const BlobFilter& filter, int page_size, absl::string_view page_token) override;
  absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> Totals(const BlobFilter& filter) override;
  absl::StatusOr<RemovedBlobs> Delete(const BlobFilter& filter) override;

 private:
  struct Kept {
    int64_t put = 0;
    int64_t used = 0;
    v1::Blob blob;  // with its data
  };

  // Removes those that are so.
  RemovedBlobs Remove(const std::function<bool(const Kept&)>& gone);
  int64_t Space() const;

  mutable std::mutex mutex_;  // guards what follows
  int64_t limit_ = kDefaultBlobLimit;
  int64_t now_ = 0;  // counts puts and uses
  std::vector<Kept> kept_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FAKE_BLOBS_H_
