// An HTTP/1.1 server over cpp-httplib, held so that no client keeps anything for long: a connection is for one request,
// which must come and be answered within times of its own, and connections beyond a number are turned away at once.
#ifndef ATTUNE_CLIENT_DASHBOARD_HTTP_SERVER_H_
#define ATTUNE_CLIENT_DASHBOARD_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/dashboard/http_message.h"

namespace attune::dashboard {

struct HttpServerOptions {
  std::string ip = "127.0.0.1";
  int port = 0;  // 0: any that is free
  // PEM files; empty: HTTP in clear.
  std::string certificate = {};
  std::string key = {};
  size_t threads = 16;                               // requests that are answered at a time
  size_t most_waiting = 256;                         // connections for a thread; more are closed
  absl::Duration request_time = absl::Seconds(5);    // from a connection's turn until its request is there
  absl::Duration response_time = absl::Seconds(20);  // to take the answer
  size_t most_request_bytes = 16 << 10;
};

class HttpServer {
 public:
  // Called on any of the server's threads at once; the response's headers come beside SecurityHeaders().
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Takes the port. InvalidArgument of a certificate or key; FailedPrecondition names the address when it is taken or
  // not this host's.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Bind(const HttpServerOptions& options);
  // Breaks every connection off, and waits for the handlers that run.
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  // Once. Connections are accepted when it returns.
  virtual void Serve(Handler handler) = 0;
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_HTTP_SERVER_H_
