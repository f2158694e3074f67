// Files that other programs' caches keep here. They are bytes to the store: bounded in all, the least recently used
// going first, and never needed, so that a backup has none of them.
//
// Thread-safe. Errors and pages are those of store.h.
#ifndef ATTUNE_SERVER_STORE_BLOBS_H_
#define ATTUNE_SERVER_STORE_BLOBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/blob.pb.h"
#include "server/store/page.h"

namespace attune::store {

inline constexpr int64_t kDefaultBlobLimit = int64_t{1} << 30;

// What counts against the limit: the blocks of its file, so that many small ones are bounded, too.
inline constexpr int64_t BlobSpace(int64_t bytes) {
  constexpr int64_t kBlock = 4096;
  return bytes <= kBlock ? kBlock : (bytes + kBlock - 1) / kBlock * kBlock;
}

// Files of one principal under one key.
struct BlobGroup {
  std::string principal;
  std::string cache;  // v1::Blob.namespace
  std::string key;
  std::vector<std::string> files;
};

// Empty fields do not filter.
struct BlobFilter {
  std::string principal = {};
  std::string cache = {};  // v1::Blob.namespace
  std::string key = {};
  std::string reader = {};  // a principal: its own and those shared
};

struct RemovedBlobs {
  int64_t blobs = 0;
  int64_t bytes = 0;
};

class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Of all blobs together, by BlobSpace; 0: none is kept.
  virtual int64_t limit() const = 0;
  // Keeps it, with its data, in place of one of the same principal, namespace, key and file, and removes others until
  // all are within the limit. Returns it with its bytes, hash and times, without data. InvalidArgument names what it
  // lacks: principal, namespace, key and file must be set. FailedPrecondition when the limit is 0, ResourceExhausted
  // when it alone is over the limit.
  virtual absl::StatusOr<v1::Blob> Put(const v1::Blob& blob) = 0;
  // Those that there are, without data, in the order of the files.
  virtual absl::StatusOr<std::vector<v1::Blob>> Find(const BlobGroup& group) = 0;
  // The data of one that was found, which counts as a use of it. NotFound when it is gone since, or damaged: to whom it
  // belongs that is a miss like any other.
  virtual absl::StatusOr<std::string> Read(const v1::Blob& blob) = 0;
  // Without data, those put last first.
  virtual absl::StatusOr<Page<v1::Blob>> List(const BlobFilter& filter, int page_size,
                                              absl::string_view page_token) = 0;
  // Of each principal and namespace that has any, the largest first; at most kMostBlobTotals.
  virtual absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> Totals(const BlobFilter& filter) = 0;
  virtual absl::StatusOr<RemovedBlobs> Delete(const BlobFilter& filter) = 0;
};

inline constexpr int kMostBlobTotals = 1000;

// One that keeps none, of a store that has no place for files.
BlobStore& NoBlobs();

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_BLOBS_H_
