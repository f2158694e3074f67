// A connection that its peer cannot hold: all of a request is read by one moment, all of its answer written by another.
#ifndef ATTUNE_CLIENT_DASHBOARD_TIMED_STREAM_H_
#define ATTUNE_CLIENT_DASHBOARD_TIMED_STREAM_H_

#include <httplib.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace attune::dashboard {

// One connected socket, without the time: in clear or encrypted.
class Transport {
 public:
  virtual ~Transport() = default;
  // Bytes; 0 at the end of the stream; -1 with `*wait_for` the events of poll(2) to wait for, or 0 on an error.
  virtual ssize_t Read(char* bytes, size_t size, short* wait_for) = 0;
  virtual ssize_t Write(const char* bytes, size_t size, short* wait_for) = 0;
};
// The socket is not owned.
std::unique_ptr<Transport> PlainTransport(int socket);
std::unique_ptr<Transport> TlsTransport(int socket, SSL_CTX* context);

// Used from one thread. The socket is not owned.
class TimedStream : public httplib::Stream {
 public:
  // `response_time` begins with the first byte that is written.
  TimedStream(int socket, std::unique_ptr<Transport> transport, absl::Duration request_time,
              absl::Duration response_time, size_t most_request_bytes);

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  // False once the time is over.
  bool WaitFor(short events, absl::Time deadline) const;

  const int socket_;
  const std::unique_ptr<Transport> transport_;
  const absl::Time read_by_;
  const absl::Duration response_time_;
  absl::Time write_by_ = absl::InfiniteFuture();
  size_t request_bytes_left_;
  std::string buffer_;  // read ahead; the library reads byte by byte
  size_t at_ = 0;       // in buffer_
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_TIMED_STREAM_H_
