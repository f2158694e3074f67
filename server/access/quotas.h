// How much each principal may ask for.
#ifndef ATTUNE_SERVER_ACCESS_QUOTAS_H_
#define ATTUNE_SERVER_ACCESS_QUOTAS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/principal.h"

namespace attune::access {

inline constexpr absl::string_view kOperationsQuota = "operations";
inline constexpr absl::string_view kDeviceQuota = "device_seconds";
inline constexpr absl::string_view kRequestsQuota = "requests_per_second";
inline constexpr absl::string_view kRequestBytesQuota = "request_bytes";

// Of each principal; 0: none.
struct QuotaLimits {
  int64_t operations = 0;           // queued or running, parts of sweeps not counted
  int64_t device_seconds = 0;       // of its operations on cards, a day (UTC)
  int64_t requests_per_second = 0;  // over time; twice as many at once
  int64_t request_bytes = 0;        // of one request

  // As errors name them.
  std::array<std::pair<absl::string_view, int64_t>, 4> Named() const {
    return {{{kOperationsQuota, operations},
             {kDeviceQuota, device_seconds},
             {kRequestsQuota, requests_per_second},
             {kRequestBytesQuota, request_bytes}}};
  }
};

// Thread-safe.
class Quotas {
 public:
  // Of principals that are told apart. There are at most 1000 tokens, but authorities sign as many certificates as they
  // like: those beyond share one account.
  static constexpr size_t kMostAccounts = 10'000;

  explicit Quotas(QuotaLimits limits) : limits_(limits) {}

  const QuotaLimits& limits() const { return limits_; }
  // Counts a request of `bytes`. ResourceExhausted with the reason QUOTA_EXCEEDED names the quota, what it is, and, of
  // one that time helps, when to try again. `now`: of a monotonic clock.
  absl::Status Take(const Principal& principal, size_t bytes, absl::Duration now);

 private:
  // A token bucket: how many requests may come at once, as of a time.
  struct Bucket {
    double level;
    absl::Duration as_of;
  };

  const QuotaLimits limits_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, Bucket, std::less<>> buckets_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_QUOTAS_H_
