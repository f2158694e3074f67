// Durations and points in time as messages carry them.
#ifndef ATTUNE_SERVER_BASE_PROTO_TIME_H_
#define ATTUNE_SERVER_BASE_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace attune {

absl::Duration DurationOf(const google::protobuf::Duration& proto);
void SetDuration(absl::Duration duration, google::protobuf::Duration* proto);
void SetTimestamp(absl::Time time, google::protobuf::Timestamp* proto);
absl::Time TimeOf(const google::protobuf::Timestamp& proto);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_PROTO_TIME_H_
