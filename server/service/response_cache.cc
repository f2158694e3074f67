#include "server/service/response_cache.h"

#include <mutex>

namespace attune::service {
namespace {

constexpr size_t kMostResponses = 10000;  // some 2 KB each

}  // namespace

std::optional<grpc::ByteBuffer> ResponseCache::Find(const std::string& request, uint64_t version) const {
  const std::shared_lock lock(mutex_);
  if (version != version_) return std::nullopt;
  const auto it = responses_.find(request);
  if (it == responses_.end()) return std::nullopt;
  return it->second;
}

void ResponseCache::Put(const std::string& request, uint64_t version, const grpc::ByteBuffer& response) {
  const std::unique_lock lock(mutex_);
  if (version < version_) return;  // made before the last change
  if (version > version_ || responses_.size() >= kMostResponses) responses_.clear();
  version_ = version;
  responses_[request] = response;
}

}  // namespace attune::service
