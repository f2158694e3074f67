// Answers as they went over the wire, by the request as it came: a repeated look-up costs one hash look-up.
#ifndef ATTUNE_SERVER_SERVICE_RESPONSE_CACHE_H_
#define ATTUNE_SERVER_SERVICE_RESPONSE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "grpcpp/support/byte_buffer.h"
#include "server/catalog/misses.h"
#include "server/metrics/answers.h"

namespace attune::service {

// Thread-safe. Holds kMostBytes at most, whoever asks for whatever.
class ResponseCache {
 public:
  static constexpr size_t kMostBytes = 16 << 20;     // of requests and responses, what it takes to keep them included
  static constexpr size_t kMostRequestBytes = 1024;  // of one that is kept
  static constexpr size_t kMostResponseBytes = 1 << 17;

  // The response kept for `request` under `version`; its bytes are shared, not copied. Where it is of a miss, that is
  // counted; nothing when the miss is to be noted anew.
  std::optional<grpc::ByteBuffer> Find(std::string_view request, uint64_t version) const;
  // Keeps a response. Whatever was kept under other versions is dropped, and everything when there is no more room.
  // Large requests and responses are not kept. `miss`: null where the answer was tuned. `kind`: counted with each Find.
  void Put(std::string_view request, uint64_t version, const grpc::ByteBuffer& response,
           catalog::MissPtr miss = nullptr, metrics::AnswerKind kind = {});

 private:
  struct Kept {
    grpc::ByteBuffer response;
    catalog::MissPtr miss;
    metrics::AnswerKind kind;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  mutable std::shared_mutex mutex_;  // guards what follows
  uint64_t version_ = 0;
  size_t bytes_ = 0;
  std::unordered_map<std::string, Kept, Hash, std::equal_to<>> responses_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_RESPONSE_CACHE_H_
