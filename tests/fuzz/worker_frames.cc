// What comes over a worker's socket: any bytes, read as answers until one is none.
#include <sys/socket.h>
#include <unistd.h>

#include "attune/worker/v1/worker.pb.h"
#include "server/base/framing.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

constexpr size_t kMost = 64 << 10;  // what a socket holds that nobody reads

// Both ends of a connection.
class Sockets {
 public:
  Sockets() { Expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) == 0, "there are sockets"); }
  ~Sockets() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int worker() const { return ends_[0]; }
  int daemon() const { return ends_[1]; }

 private:
  int ends_[2];
};

void ExpectReadsBack(const worker::v1::Response& response) {
  const Sockets sockets;
  Expect(WriteMessage(sockets.worker(), response, kNever).ok(), "an answer can be sent");
  worker::v1::Response again;
  Expect(ReadMessage(sockets.daemon(), again, kNever).ok() && again.SerializeAsString() == response.SerializeAsString(),
         "an answer reads back as itself");
}

ATTUNE_FUZZ_TARGET(worker_frames) {
  if (input.size() > kMost) return;
  const Sockets sockets;
  Expect(write(sockets.worker(), input.data(), input.size()) == static_cast<ssize_t>(input.size()),
         "a socket takes what is sent");
  shutdown(sockets.worker(), SHUT_WR);
  for (size_t left = input.size();; left -= 4) {
    worker::v1::Response response;
    const absl::Status status = ReadMessage(sockets.daemon(), response, kNever);
    if (!status.ok()) {
      const bool closed = absl::IsUnavailable(status);
      return ExpectRefusal(status, closed ? absl::StatusCode::kUnavailable : absl::StatusCode::kDataLoss, {" "});
    }
    Expect(left >= 4, "a message has a length");
    ExpectReadsBack(response);
  }
}

}  // namespace
}  // namespace attune::fuzz
