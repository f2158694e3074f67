#include "server/store/sqlite/blobs/kept_blobs.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/base/sha256.h"
#include "server/store/blob_rules.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {

absl::StatusOr<std::unique_ptr<KeptBlobs>> KeptBlobs::Open(const std::string& directory, Writer* writer,
                                                           Readers* readers, int64_t limit) {
  absl::StatusOr<std::unique_ptr<ArtifactFiles>> files = ArtifactFiles::Open(directory);
  if (!files.ok()) return files.status();
  std::unique_ptr<KeptBlobs> blobs(new KeptBlobs(*std::move(files), writer, readers, limit));
  if (absl::Status status = blobs->TidyUp(); !status.ok()) {
    LogWarning("blobs could not be tidied up; the next start tries again", {{"reason", status.message()}});
  }
  return blobs;
}

absl::Status KeptBlobs::TidyUp() {
  const std::lock_guard<std::mutex> lock(writing_);
  const absl::StatusOr<std::vector<ArtifactFile>> listed = files_->List();
  if (!listed.ok()) return listed.status();
  std::set<std::string> there;
  for (const ArtifactFile& file : *listed) there.insert(file.sha256);
  const absl::StatusOr<int64_t> last = readers_.With([](Connection& connection) { return LastUseOfBlobs(connection); });
  if (!last.ok()) return last.status();
  last_use_ = *last;
  const absl::StatusOr<int64_t> before = readers_.With([](Connection& connection) { return SpaceOfBlobs(connection); });
  if (!before.ok()) return before.status();
  space_ = *before;
  const absl::StatusOr<int64_t> space =
      writer_.WriteAndReturn<int64_t>([&](Connection& connection) -> absl::StatusOr<int64_t> {
        RemovedRows removed;
        absl::Status status = RemoveBlobsWithoutFile(connection, there, removed);
        if (!status.ok()) return status;
        const absl::StatusOr<int64_t> left = SpaceOfBlobs(connection);
        if (!left.ok()) return left;
        if (status = RemoveOldestBlobs(connection, *left - limit_, removed); !status.ok()) return status;
        return SpaceOfBlobs(connection);
      });
  if (!space.ok()) return space.status();
  space_ = *space;
  return RemoveFiles(there);
}

absl::StatusOr<v1::Blob> KeptBlobs::Put(const v1::Blob& blob) {
  if (absl::Status status = CheckBlob(blob, limit_); !status.ok()) return status;
  v1::Blob kept = blob;
  kept.clear_data();
  kept.set_bytes(static_cast<int64_t>(blob.data().size()));
  kept.set_sha256(Sha256(blob.data()));
  *kept.mutable_create_time() = Now();
  const std::lock_guard<std::mutex> lock(writing_);
  const absl::Status written = files_->Put(kept.sha256(), blob.data());
  writer_.health().Note(written);
  if (!written.ok()) return written;
  RemovedRows removed;
  const std::string sha256 = kept.sha256();
  absl::StatusOr<v1::Blob> put = PutRow(std::move(kept), removed);
  if (!put.ok()) removed.files = {sha256};
  if (absl::Status status = RemoveFiles(removed.files); !status.ok()) {
    LogWarning("files of blobs could not be removed; the next start tries again", {{"reason", status.message()}});
  }
  return put;
}

// The caller holds writing_.
absl::StatusOr<v1::Blob> KeptBlobs::PutRow(v1::Blob blob, RemovedRows& removed) {
  const int64_t used_ns = NextUse();
  const int64_t space = BlobSpace(blob.bytes());
  const BlobUses uses = TakeUses();
  absl::Status status = writer_.Write([&](Connection& connection) -> absl::Status {
    removed = RemovedRows();
    if (absl::Status noted = WriteBlobUses(connection, uses); !noted.ok()) return noted;
    v1::Blob any = blob;
    any.clear_sha256();
    const absl::StatusOr<int64_t> former = IdOfBlob(connection, any);
    if (!former.ok()) return former.status();
    if (absl::Status gone = RemoveBlob(connection, *former, removed); !gone.ok()) return gone;
    // Before it is there itself, so that it is never what has to go.
    const int64_t excess = space_ - removed.space + space - limit_;
    if (absl::Status gone = RemoveOldestBlobs(connection, excess, removed); !gone.ok()) return gone;
    return InsertBlob(connection, blob, used_ns);
  });
  if (!status.ok()) return status;
  space_ += space - removed.space;
  *blob.mutable_use_time() = FromNanoseconds(used_ns);
  return blob;
}

absl::Status KeptBlobs::RemoveFiles(const std::set<std::string>& files) {
  for (const std::string& file : files) {
    const absl::StatusOr<bool> named =
        readers_.With([&](Connection& connection) { return IsFileOfBlob(connection, file); });
    if (!named.ok()) return named.status();
    if (*named) continue;
    if (absl::Status status = files_->Remove(file); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Blob>> KeptBlobs::Find(const BlobGroup& group) {
  return readers_.With([&](Connection& connection) { return FindBlobs(connection, group); });
}

absl::StatusOr<std::string> KeptBlobs::Read(const v1::Blob& blob) {
  const absl::StatusOr<int64_t> id = readers_.With([&](Connection& connection) { return IdOfBlob(connection, blob); });
  if (!id.ok()) return id.status();
  if (*id == 0) return NoBlob(blob);
  absl::StatusOr<std::string> data = files_->Read(blob.sha256());
  if (absl::IsDataLoss(data.status())) {
    LogWarning("a blob is damaged; it is one no more until it is put again", {{"reason", data.status().message()}});
  }
  if (absl::IsNotFound(data.status()) || absl::IsDataLoss(data.status())) return NoBlob(blob);
  if (!data.ok()) return data;
  const int64_t used_ns = NextUse();
  const std::lock_guard<std::mutex> lock(using_);
  uses_[*id] = used_ns;
  return data;
}

absl::StatusOr<Page<v1::Blob>> KeptBlobs::List(const BlobFilter& filter, int page_size, absl::string_view page_token) {
  return readers_.With([&](Connection& connection) { return ListBlobs(connection, filter, page_size, page_token); });
}

absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> KeptBlobs::Totals(const BlobFilter& filter) {
  return readers_.With([&](Connection& connection) { return BlobTotals(connection, filter); });
}

absl::StatusOr<RemovedBlobs> KeptBlobs::Delete(const BlobFilter& filter) {
  const std::lock_guard<std::mutex> lock(writing_);
  RemovedRows removed;
  absl::Status status = writer_.Write([&](Connection& connection) {
    removed = RemovedRows();
    return RemoveBlobs(connection, filter, removed);
  });
  if (!status.ok()) return status;
  space_ -= removed.space;
  if (status = RemoveFiles(removed.files); !status.ok()) return status;
  return RemovedBlobs{removed.blobs, removed.bytes};
}

absl::Status KeptBlobs::WriteUses() {
  const std::lock_guard<std::mutex> lock(writing_);
  const BlobUses uses = TakeUses();
  if (uses.empty()) return absl::OkStatus();
  return writer_.Write([&](Connection& connection) { return WriteBlobUses(connection, uses); });
}

int64_t KeptBlobs::NextUse() {
  const std::lock_guard<std::mutex> lock(using_);
  last_use_ = std::max(last_use_ + 1, absl::ToUnixNanos(absl::Now()));
  return last_use_;
}

BlobUses KeptBlobs::TakeUses() {
  const std::lock_guard<std::mutex> lock(using_);
  return std::exchange(uses_, BlobUses());
}

}  // namespace attune::store::sqlite
