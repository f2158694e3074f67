// Files of other programs' caches, in the database; equal contents are one row. Puts and removals go one after the
// other, over all hosts.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KEPT_BLOBS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KEPT_BLOBS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/store/blobs.h"
#include "server/store/postgresql/pool.h"

namespace attune::store::postgresql {

class KeptBlobs : public BlobStore {
 public:
  // `limit` holds for the blobs of all hosts: each put keeps to that of its own. `pool` lives longer.
  KeptBlobs(Pool* pool, int64_t limit) : pool_(*pool), limit_(limit) {}

  int64_t limit() const override { return limit_; }
  absl::StatusOr<v1::Blob> Put(const v1::Blob& blob) override;
  absl::StatusOr<std::vector<v1::Blob>> Find(const BlobGroup& group) override;
  absl::StatusOr<std::string> Read(const v1::Blob& blob) override;
  absl::StatusOr<Page<v1::Blob>> List(const BlobFilter& filter, int page_size, absl::string_view page_token) override;
  absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> Totals(const BlobFilter& filter) override;
  absl::StatusOr<RemovedBlobs> Delete(const BlobFilter& filter) override;

  // Writes down when blobs were used. Uses are noted in memory, because reading must not write, and written before they
  // count, which is when room is made.
  absl::Status WriteUses();

 private:
  using Uses = std::map<int64_t, int64_t>;  // when each was used, by row

  // Later than every use that this process has noted before.
  int64_t NextUse();
  Uses TakeUses();
  static absl::Status KeepUses(Connection& connection, const Uses& uses);

  Pool& pool_;
  const int64_t limit_;
  std::mutex mutex_;  // guards what follows
  int64_t last_use_ = 0;
  Uses uses_;  // noted, not written
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KEPT_BLOBS_H_
