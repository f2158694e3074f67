// Messages over a socket: a 4-byte little-endian length and that many bytes of serialised protobuf.
//
// DeadlineExceeded: not all of it went in time. Unavailable: the peer has closed the connection. DataLoss: what came
// is not a message. After any error the connection is of no more use.
#ifndef ATTUNE_SERVER_BASE_FRAMING_H_
#define ATTUNE_SERVER_BASE_FRAMING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/message_lite.h"
#include "server/base/deadline.h"

namespace attune {

inline constexpr uint32_t kMaxMessageBytes = uint32_t{512} << 20;

// InvalidArgument, with nothing sent, when the message is larger than kMaxMessageBytes.
absl::Status WriteMessage(int fd, const google::protobuf::MessageLite& message, Deadline deadline);
absl::Status ReadMessage(int fd, google::protobuf::MessageLite& message, Deadline deadline);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_FRAMING_H_
