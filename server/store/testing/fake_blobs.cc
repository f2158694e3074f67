#include "server/store/testing/fake_blobs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "server/base/sha256.h"
#include "server/store/blob_rules.h"
#include "server/store/testing/listing.h"

namespace attune::store {
namespace {

v1::Blob WithoutData(v1::Blob blob) {
  blob.clear_data();
  return blob;
}

bool IsSame(const v1::Blob& a, const v1::Blob& b) {
  return a.principal() == b.principal() && a.namespace_() == b.namespace_() && a.key() == b.key() &&
         a.file() == b.file();
}

bool Fits(const BlobFilter& filter, const v1::Blob& blob) {
  return (filter.principal.empty() || filter.principal == blob.principal()) &&
         (filter.cache.empty() || filter.cache == blob.namespace_()) &&
         (filter.key.empty() || filter.key == blob.key()) &&
         (filter.reader.empty() || blob.shared() || filter.reader == blob.principal());
}

}  // namespace

void FakeBlobs::SetLimit(int64_t limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_ = limit;
}
int64_t FakeBlobs::limit() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

absl::StatusOr<v1::Blob> FakeBlobs::Put(const v1::Blob& blob) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckBlob(blob, limit_); !status.ok()) return status;
  v1::Blob kept = blob;
  kept.set_bytes(static_cast<int64_t>(blob.data().size()));
  kept.set_sha256(Sha256(blob.data()));
  *kept.mutable_create_time() = google::protobuf::util::TimeUtil::GetCurrentTime();
  *kept.mutable_use_time() = kept.create_time();
  Remove([&](const Kept& other) { return IsSame(other.blob, blob); });
  while (Space() + BlobSpace(kept.bytes()) > limit_) {
    const auto oldest =
        std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
    kept_.erase(oldest);
  }
  ++now_;
  kept_.push_back({now_, now_, kept});
  return WithoutData(std::move(kept));
}

absl::StatusOr<std::vector<v1::Blob>> FakeBlobs::Find(const BlobGroup& group) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::Blob> found;
  v1::Blob wanted;
  wanted.set_principal(group.principal);
  wanted.set_namespace_(group.cache);
  wanted.set_key(group.key);
  for (const std::string& file : group.files) {
    wanted.set_file(file);
    for (const Kept& kept : kept_) {
      if (IsSame(kept.blob, wanted)) found.push_back(WithoutData(kept.blob));
    }
  }
  return found;
}

absl::StatusOr<std::string> FakeBlobs::Read(const v1::Blob& blob) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Kept& kept : kept_) {
    if (!IsSame(kept.blob, blob) || kept.blob.sha256() != blob.sha256()) continue;
    kept.used = ++now_;
    return kept.blob.data();
  }
  return NoBlob(blob);
}

absl::StatusOr<Page<v1::Blob>> FakeBlobs::List(const BlobFilter& filter, int page_size, absl::string_view page_token) {
  std::vector<Row<v1::Blob>> rows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
      if (Fits(filter, it->blob)) rows.push_back({{it->put}, WithoutData(it->blob)});
    }
  }
  return Cut(std::move(rows), NameOf(filter), page_size, page_token, IsOlder);
}

absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> FakeBlobs::Totals(const BlobFilter& filter) {
  std::map<std::pair<std::string, std::string>, v1::ListBlobsResponse::Total> sums;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Kept& kept : kept_) {
      if (!Fits(filter, kept.blob)) continue;
      v1::ListBlobsResponse::Total& sum = sums[{kept.blob.principal(), kept.blob.namespace_()}];
      sum.set_principal(kept.blob.principal());
      sum.set_namespace_(kept.blob.namespace_());
      sum.set_blobs(sum.blobs() + 1);
      sum.set_bytes(sum.bytes() + kept.blob.bytes());
    }
  }
  std::vector<v1::ListBlobsResponse::Total> totals;
  for (auto& [key, sum] : sums) totals.push_back(std::move(sum));
  std::stable_sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
  if (totals.size() > kMostBlobTotals) totals.resize(kMostBlobTotals);
  return totals;
}

absl::StatusOr<RemovedBlobs> FakeBlobs::Delete(const BlobFilter& filter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Remove([&](const Kept& kept) { return Fits(filter, kept.blob); });
}

RemovedBlobs FakeBlobs::Remove(const std::function<bool(const Kept&)>& gone) {
  RemovedBlobs removed;
  std::vector<Kept> left;
  for (Kept& kept : kept_) {
    if (!gone(kept)) {
      left.push_back(std::move(kept));
      continue;
    }
    ++removed.blobs;
    removed.bytes += kept.blob.bytes();
  }
  kept_ = std::move(left);
  return removed;
}

int64_t FakeBlobs::Space() const {
  int64_t space = 0;
  for (const Kept& kept : kept_) space += BlobSpace(kept.blob.bytes());
  return space;
}

}  // namespace attune::store
