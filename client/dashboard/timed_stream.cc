#include "client/dashboard/timed_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace attune::dashboard {
namespace {

class Plain : public Transport {
 public:
  explicit Plain(int socket) : socket_(socket) {}
  ssize_t Read(char* bytes, size_t size, short* wait_for) override {
    return Result(recv(socket_, bytes, size, MSG_DONTWAIT), POLLIN, wait_for);
  }
  ssize_t Write(const char* bytes, size_t size, short* wait_for) override {
    return Result(send(socket_, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL), POLLOUT, wait_for);
  }

 private:
  static ssize_t Result(ssize_t done, short events, short* wait_for) {
    const bool again = done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    *wait_for = again ? events : static_cast<short>(0);
    return done;
  }
  const int socket_;
};

// The handshake is part of the first read.
class Tls : public Transport {
 public:
  Tls(int socket, SSL_CTX* context) : ssl_(SSL_new(context), SSL_free) {
    if (ssl_ == nullptr) return;
    // A read of a record that comes byte by byte would block until it is whole: what waits is WaitFor.
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    BIO* bio = BIO_new_socket(socket, BIO_NOCLOSE);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }
  ssize_t Read(char* bytes, size_t size, short* wait_for) override {
    return ssl_ == nullptr ? -1 : Result(SSL_read(ssl_.get(), bytes, static_cast<int>(size)), wait_for);
  }
  ssize_t Write(const char* bytes, size_t size, short* wait_for) override {
    const int most = static_cast<int>(std::min<size_t>(size, 16 << 10));
    return ssl_ == nullptr ? -1 : Result(SSL_write(ssl_.get(), bytes, most), wait_for);
  }
  ~Tls() override {
    if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }

 private:
  ssize_t Result(int done, short* wait_for) const {
    *wait_for = 0;
    if (done > 0) return done;
    switch (SSL_get_error(ssl_.get(), done)) {
      case SSL_ERROR_WANT_READ:
        *wait_for = POLLIN;
        return -1;
      case SSL_ERROR_WANT_WRITE:
        *wait_for = POLLOUT;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      default:
        ERR_clear_error();
        return -1;
    }
  }
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

}  // namespace

std::unique_ptr<Transport> PlainTransport(int socket) { return std::make_unique<Plain>(socket); }
std::unique_ptr<Transport> TlsTransport(int socket, SSL_CTX* context) { return std::make_unique<Tls>(socket, context); }

TimedStream::TimedStream(int socket, std::unique_ptr<Transport> transport, absl::Duration request_time,
                         absl::Duration response_time, size_t most_request_bytes)
    : socket_(socket),
      transport_(std::move(transport)),
      read_by_(absl::Now() + request_time),
      response_time_(response_time),
      request_bytes_left_(most_request_bytes) {}

bool TimedStream::WaitFor(short events, absl::Time deadline) const {
  for (;;) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd fd = {socket_, events, 0};
    const int ready = poll(&fd, 1, static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

ssize_t TimedStream::read(char* bytes, size_t size) {
  while (at_ == buffer_.size()) {
    if (request_bytes_left_ == 0) return -1;
    buffer_.resize(std::min<size_t>(4096, request_bytes_left_));
    at_ = buffer_.size();
    short wait_for = 0;
    const ssize_t got = transport_->Read(buffer_.data(), buffer_.size(), &wait_for);
    if (got > 0) {
      buffer_.resize(static_cast<size_t>(got));
      request_bytes_left_ -= buffer_.size();
      at_ = 0;
    } else if (got == 0 || wait_for == 0 || !WaitFor(wait_for, read_by_)) {
      return got == 0 ? 0 : -1;
    }
  }
  const size_t taken = std::min(size, buffer_.size() - at_);
  std::memcpy(bytes, buffer_.data() + at_, taken);
  at_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t TimedStream::write(const char* bytes, size_t size) {
  if (write_by_ == absl::InfiniteFuture()) write_by_ = absl::Now() + response_time_;
  for (;;) {
    // One that takes its answer byte by byte is always ready for one more.
    if (absl::Now() >= write_by_) return -1;
    short wait_for = 0;
    const ssize_t written = transport_->Write(bytes, size, &wait_for);
    if (written > 0) return written;
    if (wait_for == 0 || !WaitFor(wait_for, write_by_)) return -1;
  }
}

}  // namespace attune::dashboard
