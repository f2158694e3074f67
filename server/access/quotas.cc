#include "server/access/quotas.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "server/base/reason.h"

namespace attune::access {
namespace {

constexpr double kBurstSeconds = 2;
constexpr char kOthers[] = "others";  // no principal's name: those have a colon, or are of a connection

absl::Status OverQuota(absl::string_view principal, absl::string_view quota, int64_t limit, absl::string_view what) {
  absl::Status status = WithReason(absl::ResourceExhaustedError(absl::StrCat(principal, " is over its quota of ", quota,
                                                                             ", which is ", limit, "; ", what)),
                                   "QUOTA_EXCEEDED");
  status.SetPayload(kPrincipalUrl, absl::Cord(principal));
  status.SetPayload(kQuotaUrl, absl::Cord(quota));
  status.SetPayload(kQuotaLimitUrl, absl::Cord(absl::StrCat(limit)));
  return status;
}

}  // namespace

absl::Status Quotas::Take(const Principal& principal, size_t bytes, absl::Duration now) {
  if (limits_.request_bytes > 0 && bytes > static_cast<size_t>(limits_.request_bytes)) {
    return OverQuota(principal.name, kRequestBytesQuota, limits_.request_bytes,
                     absl::StrCat("the request has ", bytes, " bytes"));
  }
  if (limits_.requests_per_second == 0) return absl::OkStatus();
  const auto rate = static_cast<double>(limits_.requests_per_second);
  double missing = 0;
  {
    const std::lock_guard lock(mutex_);
    auto found = buckets_.find(principal.name);
    if (found == buckets_.end()) {
      const bool room = buckets_.size() < kMostAccounts;
      found = buckets_.try_emplace(room ? principal.name : kOthers, Bucket{kBurstSeconds * rate, now}).first;
    }
    Bucket& bucket = found->second;
    bucket.level += rate * absl::ToDoubleSeconds(std::max(now - bucket.as_of, absl::ZeroDuration()));
    bucket.level = std::min(bucket.level, kBurstSeconds * rate);
    bucket.as_of = std::max(now, bucket.as_of);
    missing = 1 - bucket.level;
    if (missing <= 0) bucket.level -= 1;
  }
  if (missing <= 0) return absl::OkStatus();
  absl::Status status = OverQuota(principal.name, kRequestsQuota, limits_.requests_per_second, "ask again later");
  SetRetryDelay(absl::Ceil(absl::Seconds(missing / rate), absl::Milliseconds(1)), status);
  return status;
}

}  // namespace attune::access
