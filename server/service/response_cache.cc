#include "server/service/response_cache.h"

#include <mutex>
#include <utility>

#include "absl/time/clock.h"

namespace attune::service {
namespace {

constexpr size_t kEntryBytes = 256;  // a node of the map, the slice's header
constexpr size_t kMissBytes = 1024;  // that an entry may be the last to hold

}  // namespace

std::optional<grpc::ByteBuffer> ResponseCache::Find(std::string_view request, uint64_t version) const {
  if (request.size() > kMostRequestBytes) return std::nullopt;
  const std::shared_lock lock(mutex_);
  if (version != version_) return std::nullopt;
  const auto it = responses_.find(request);
  if (it == responses_.end()) return std::nullopt;
  const Kept& kept = it->second;
  if (kept.miss != nullptr && !kept.miss->Count(absl::Now())) return std::nullopt;
  kept.kind.Count();
  return kept.response;
}

void ResponseCache::Put(std::string_view request, uint64_t version, const grpc::ByteBuffer& response,
                        catalog::MissPtr miss, metrics::AnswerKind kind) {
  if (request.size() > kMostRequestBytes || response.Length() > kMostResponseBytes) return;
  const size_t bytes = request.size() + response.Length() + kEntryBytes + (miss == nullptr ? 0 : kMissBytes);
  const std::unique_lock lock(mutex_);
  if (version < version_) return;  // made before the last change
  if (version > version_ || bytes_ + bytes > kMostBytes) {
    responses_.clear();
    bytes_ = 0;
  }
  version_ = version;
  // Two calls may have made the same answer; the later one has the miss that is listed.
  const bool fresh = responses_.insert_or_assign(std::string(request), Kept{response, std::move(miss), kind}).second;
  if (fresh) bytes_ += bytes;
}

}  // namespace attune::service
