#include "server/base/framing.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace attune {
namespace {

// A received length is believed in steps: garbage must not make us allocate half a gigabyte.
constexpr size_t kReadStep = size_t{1} << 20;

absl::Status WaitFor(int fd, short events, Deadline deadline) {
  pollfd entry = {fd, events, 0};
  const int ready = poll(&entry, 1, PollTimeout(deadline));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return absl::OkStatus();
  if (ready == 0) return absl::DeadlineExceededError("the deadline has passed");
  return absl::ErrnoToStatus(errno, "poll");
}

absl::Status PeerClosed() { return absl::UnavailableError("the peer has closed the connection"); }

// A call's error when it is not that the socket was not ready after all.
absl::Status TransferError(const char* call) {
  if (errno == EAGAIN || errno == EINTR) return absl::OkStatus();
  if (errno == EPIPE || errno == ECONNRESET) return PeerClosed();
  return absl::ErrnoToStatus(errno, call);
}

absl::Status SendAll(int fd, const char* data, size_t size, Deadline deadline) {
  while (size > 0) {
    if (absl::Status status = WaitFor(fd, POLLOUT, deadline); !status.ok()) return status;
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (absl::Status status = TransferError("send"); !status.ok()) return status;
      continue;
    }
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, char* data, size_t size, Deadline deadline) {
  while (size > 0) {
    if (absl::Status status = WaitFor(fd, POLLIN, deadline); !status.ok()) return status;
    const ssize_t received = recv(fd, data, size, MSG_DONTWAIT);
    if (received == 0) return PeerClosed();
    if (received < 0) {
      if (absl::Status status = TransferError("recv"); !status.ok()) return status;
      continue;
    }
    data += received;
    size -= static_cast<size_t>(received);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteMessage(int fd, const google::protobuf::MessageLite& message, Deadline deadline) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", size, " bytes; allowed: at most ", kMaxMessageBytes));
  }
  std::string bytes;
  bytes.reserve(size + 4);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(size >> shift & 0xff));
  if (!message.AppendToString(&bytes)) return absl::InvalidArgumentError("the message cannot be serialised");
  return SendAll(fd, bytes.data(), bytes.size(), deadline);
}

absl::Status ReadMessage(int fd, google::protobuf::MessageLite& message, Deadline deadline) {
  unsigned char header[4];
  if (absl::Status status = ReceiveAll(fd, reinterpret_cast<char*>(header), sizeof header, deadline); !status.ok()) {
    return status;
  }
  const uint32_t size = header[0] | header[1] << 8 | header[2] << 16 | static_cast<uint32_t>(header[3]) << 24;
  if (size > kMaxMessageBytes) {
    return absl::DataLossError(
        absl::StrCat("a message of ", size, " bytes is announced; allowed: at most ", kMaxMessageBytes));
  }
  std::string bytes;
  while (bytes.size() < size) {
    const size_t begin = bytes.size();
    bytes.resize(std::min<size_t>(size, begin + std::max(begin, kReadStep)));
    if (absl::Status status = ReceiveAll(fd, bytes.data() + begin, bytes.size() - begin, deadline); !status.ok()) {
      return status;
    }
  }
  if (!message.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(size, " bytes that are no ", message.GetTypeName()));
  }
  return absl::OkStatus();
}

}  // namespace attune
