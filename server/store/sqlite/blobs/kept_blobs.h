// Blobs as rows of the database and files named by their content, like compiled code: bytes of megabytes would make the
// database, its log and every backup larger for what can be had again.
#ifndef ATTUNE_SERVER_STORE_SQLITE_BLOBS_KEPT_BLOBS_H_
#define ATTUNE_SERVER_STORE_SQLITE_BLOBS_KEPT_BLOBS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/store/artifact_files.h"
#include "server/store/blobs.h"
#include "server/store/sqlite/blobs/blob_rows.h"
#include "server/store/sqlite/readers.h"
#include "server/store/sqlite/writer.h"

namespace attune::store::sqlite {

// Puts and removals are made one after the other, so that a file is removed when no row names it and nobody is about to
// write one that does. Who reads meanwhile finds a file gone at worst.
class KeptBlobs : public BlobStore {
 public:
  // Files are in `directory`. Removes rows whose file is missing (as in a restored backup), files that no row names
  // (as a crash leaves them), and what is over the limit; warns when it cannot. Writer and readers live longer.
  static absl::StatusOr<std::unique_ptr<KeptBlobs>> Open(const std::string& directory, Writer* writer, Readers* readers,
                                                         int64_t limit);

  int64_t limit() const override { return limit_; }
  absl::StatusOr<v1::Blob> Put(const v1::Blob& blob) override;
  absl::StatusOr<std::vector<v1::Blob>> Find(const BlobGroup& group) override;
  absl::StatusOr<std::string> Read(const v1::Blob& blob) override;
  absl::StatusOr<Page<v1::Blob>> List(const BlobFilter& filter, int page_size, absl::string_view page_token) override;
  absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> Totals(const BlobFilter& filter) override;
  absl::StatusOr<RemovedBlobs> Delete(const BlobFilter& filter) override;

  // Writes down when blobs were used. They are noted in memory, because reading must not write, and written before they
  // count, which is when room is made.
  absl::Status WriteUses();

 private:
  KeptBlobs(std::unique_ptr<ArtifactFiles> files, Writer* writer, Readers* readers, int64_t limit)
      : files_(std::move(files)), writer_(*writer), readers_(*readers), limit_(limit) {}

  absl::Status TidyUp();
  absl::StatusOr<v1::Blob> PutRow(v1::Blob blob, RemovedRows& removed);
  // Those that no row names any more.
  absl::Status RemoveFiles(const std::set<std::string>& files);
  // Later than every use before.
  int64_t NextUse();
  BlobUses TakeUses();

  const std::unique_ptr<ArtifactFiles> files_;
  Writer& writer_;
  Readers& readers_;
  const int64_t limit_;

  std::mutex writing_;  // guards space_, and the files
  int64_t space_ = 0;   // by BlobSpace, of all rows

  std::mutex using_;  // guards what follows
  int64_t last_use_ = 0;
  BlobUses uses_;  // noted, not written
};

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_BLOBS_KEPT_BLOBS_H_
