// What every request must keep to, whatever it asks for: how long its texts and lists may be, and that its numbers,
// enums, durations and times are such. One table; what a field means is checked after it (validate.h).
#ifndef ATTUNE_SERVER_SERVICE_LIMITS_H_
#define ATTUNE_SERVER_SERVICE_LIMITS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace attune::service {

// The largest request: a sweep of 100,000 problems fits.
inline constexpr int kMostRequestBytes = 4 << 20;
// What is read of one, so that the audit log has whose it was. A larger one gRPC ends before there is a call.
inline constexpr int kMostReadBytes = 2 * kMostRequestBytes;
// Of one blob, so that its request and its answer have so many.
inline constexpr int kMostBlobBytes = kMostRequestBytes - (64 << 10);

// InvalidArgument names the field, its value and what is allowed.
absl::Status CheckLimits(const google::protobuf::Message& request);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_LIMITS_H_
