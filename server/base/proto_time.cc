#include "server/base/proto_time.h"

#include <cstdint>

namespace attune {

absl::Duration DurationOf(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

void SetDuration(absl::Duration duration, google::protobuf::Duration* proto) {
  const int64_t seconds = absl::IDivDuration(duration, absl::Seconds(1), &duration);
  proto->set_seconds(seconds);
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

void SetTimestamp(absl::Time time, google::protobuf::Timestamp* proto) {
  absl::Duration rest = time - absl::UnixEpoch();
  const int64_t seconds = absl::IDivDuration(rest, absl::Seconds(1), &rest);
  proto->set_seconds(seconds);
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

absl::Time TimeOf(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace attune
