// Answers as they went over the wire, by the request as it came: a repeated look-up costs one hash look-up.
#ifndef ATTUNE_SERVER_SERVICE_RESPONSE_CACHE_H_
#define ATTUNE_SERVER_SERVICE_RESPONSE_CACHE_H_

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "grpcpp/support/byte_buffer.h"

namespace attune::service {

// Thread-safe.
class ResponseCache {
 public:
  // The response kept for `request` under `version`; its bytes are shared, not copied.
  std::optional<grpc::ByteBuffer> Find(const std::string& request, uint64_t version) const;
  // Keeps a response. Whatever was kept under other versions is dropped.
  void Put(const std::string& request, uint64_t version, const grpc::ByteBuffer& response);

 private:
  mutable std::shared_mutex mutex_;  // guards what follows
  uint64_t version_ = 0;
  std::unordered_map<std::string, grpc::ByteBuffer> responses_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_RESPONSE_CACHE_H_
