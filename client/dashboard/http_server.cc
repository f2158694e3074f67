#include "client/dashboard/http_server.h"

#include <fcntl.h>
#include <httplib.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/dashboard/errors.h"
#include "client/dashboard/guard.h"
#include "client/dashboard/listen_address.h"
#include "client/dashboard/timed_stream.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {
namespace {

constexpr int kBacklog = 128;
constexpr int kDeferSeconds = 5;

// Threads that serve one connection at a time each. What is one too many is done by the thread that brings it, which
// Refusing() tells it.
class Workers : public httplib::TaskQueue {
 public:
  Workers(size_t threads, size_t most_waiting) : most_waiting_(most_waiting) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void enqueue(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() < most_waiting_) {
        waiting_.push_back(std::move(task));
        changed_.notify_one();
        return;
      }
    }
    refusing_ = true;
    task();
    refusing_ = false;
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  static bool Refusing() { return refusing_; }

 private:
  void Work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        task = std::move(waiting_.front());
        waiting_.pop_front();
      }
      task();
    }
  }

  static thread_local bool refusing_;
  const size_t most_waiting_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};
thread_local bool Workers::refusing_ = false;

// The sockets that are open, so that a stop need not wait for their peers.
class Sockets {
 public:
  // False after CloseAll: the socket is not to be served.
  bool Add(int socket) {
    const std::lock_guard lock(mutex_);
    if (!closed_) open_.insert(socket);
    return !closed_;
  }
  void Remove(int socket) {
    const std::lock_guard lock(mutex_);
    open_.erase(socket);
  }
  void CloseAll() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const int socket : open_) ::shutdown(socket, SHUT_RDWR);
  }

 private:
  std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::set<int> open_;
};

bool TakesGzip(const HttpRequest& request) {
  for (absl::string_view coding : absl::StrSplit(request.header("Accept-Encoding"), ',')) {
    coding = absl::StripAsciiWhitespace(coding);
    if (coding == "gzip" || (absl::StartsWith(coding, "gzip;") && !absl::StrContains(coding, "q=0"))) return true;
  }
  return false;
}

void Fill(const HttpRequest& request, const HttpResponse& answer, httplib::Response* response) {
  response->status = answer.status;
  for (const auto& [name, value] : answer.headers) response->set_header(name, value);
  const ContentPtr& content = answer.content;
  if (content == nullptr) return;
  response->set_header("Vary", "Accept-Encoding");
  const bool gzip = !content->gzip.empty() && TakesGzip(request);
  if (gzip) response->set_header("Content-Encoding", "gzip");
  const std::string& bytes = gzip ? content->gzip : content->plain;
  if (bytes.empty()) {
    response->set_header("Content-Type", content->type);
    return;
  }
  // Not set_content: the library would compress it, and take its slowest way to.
  response->set_content_provider(bytes.size(), content->type,
                                 [content, &bytes](size_t offset, size_t length, httplib::DataSink& sink) {
                                   return sink.write(bytes.data() + offset, length);
                                 });
}

HttpRequest ToRequest(const httplib::Request& request) {
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(absl::string_view(request.target), absl::MaxSplits('?', 1));
  HttpRequest plain{.method = request.method, .path = std::string(target.first), .query = std::string(target.second)};
  for (const auto& [name, value] : request.headers) plain.headers.emplace(name, value);
  return plain;
}

// Base: httplib::Server or httplib::SSLServer, whose sockets, times and threads this replaces.
template <typename Base>
class Served : public Base {
 public:
  template <typename... Files>
  explicit Served(const HttpServerOptions& options, const Files&... files) : Base(files...), options_(options) {
    this->new_task_queue = [this] { return new Workers(options_.threads, options_.most_waiting); };
    httplib::Headers headers;
    for (const auto& [name, value] : SecurityHeaders()) headers.emplace(name, value);
    this->set_default_headers(headers);
    // The library would share a port with whoever listens there already.
    this->set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      // A connection on which nothing comes, as browsers open ahead, costs no thread.
      setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kDeferSeconds, sizeof(kDeferSeconds));
    });
    this->set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const HttpRequest plain = ToRequest(request);
      Fill(plain, handler_(plain), &response);
      return httplib::Server::HandlerResponse::Handled;
    });
    // Of what the library itself finds wrong.
    this->set_error_handler(httplib::Server::HandlerWithResponse([](const auto&, httplib::Response& response) {
      if (response.content_length_ == 0) {
        Fill({}, ErrorResponse(response.status, "INVALID_ARGUMENT", "this is no request that HTTP allows"), &response);
      }
      return httplib::Server::HandlerResponse::Unhandled;
    }));
    this->set_exception_handler([](const auto&, httplib::Response& response, std::exception_ptr) {
      Fill({}, ErrorResponse(500, "INTERNAL", "the dashboard failed"), &response);
    });
    this->set_post_routing_handler([](const auto&, httplib::Response& response) {
      response.headers.erase("Accept-Ranges");
      response.set_header("Accept-Ranges", "none");
      if (response.status == 304) response.headers.erase("Content-Length");  // it would be that of a 200
    });
  }

  bool TakePort() {
    const int port = options_.port == 0 ? this->bind_to_any_port(options_.ip)
                                        : (this->bind_to_port(options_.ip, options_.port) ? options_.port : -1);
    if (port < 0) return false;
    ::listen(this->svr_sock_, kBacklog);  // again: the library's is 5
    port_ = port;
    return true;
  }
  int port() const { return port_; }

  void Run(HttpServer::Handler handler) {
    handler_ = std::move(handler);
    this->listen_after_bind();
  }
  ~Served() override {
    if (this->svr_sock_ != INVALID_SOCKET) ::close(this->svr_sock_);  // bound, and never run
  }

  void Break() { sockets_.CloseAll(); }

 private:
  // The library's own would keep a thread on each connection that it keeps alive, and give each byte a time of its own.
  bool process_and_close_socket(int socket) override {
    bool served = false;
    if (!Workers::Refusing() && sockets_.Add(socket)) {
      TimedStream stream(socket, NewTransport(socket), options_.request_time, options_.response_time,
                         options_.most_request_bytes);
      bool closed = false;
      served = this->process_request(stream, /*close_connection=*/true, closed,
                                     [](httplib::Request& request) { request.ranges.clear(); });
      sockets_.Remove(socket);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return served;
  }
  std::unique_ptr<Transport> NewTransport(int socket) const {
    if constexpr (std::is_same_v<Base, httplib::SSLServer>) {
      return TlsTransport(socket, this->ssl_context());
    } else {
      return PlainTransport(socket);
    }
  }

  const HttpServerOptions options_;
  HttpServer::Handler handler_;
  Sockets sockets_;
  int port_ = 0;
};

template <typename Base>
class BoundServer : public HttpServer {
 public:
  explicit BoundServer(std::unique_ptr<Served<Base>> server) : server_(std::move(server)) {}
  ~BoundServer() override {
    if (!thread_.joinable()) return;
    server_->Break();
    server_->stop();
    thread_.join();
  }
  int port() const override { return server_->port(); }
  void Serve(Handler handler) override {
    thread_ = std::thread([this, handler = std::move(handler)] { server_->Run(handler); });
    // A stop before that would be forgotten.
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  const std::unique_ptr<Served<Base>> server_;
  std::thread thread_;
};

template <typename Base>
absl::StatusOr<std::unique_ptr<HttpServer>> Bound(const HttpServerOptions& options,
                                                  std::unique_ptr<Served<Base>> server) {
  errno = 0;
  if (!server->TakePort()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--listen is ", Quoted(HostAndPort(options.ip, options.port)), ": ",
                     errno == 0 ? "it cannot be listened on" : std::strerror(errno),
                     "; allowed: an address of this host with a port that is free, or port 0"));
  }
  return std::make_unique<BoundServer<Base>>(std::move(server));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Bind(const HttpServerOptions& options) {
  if (options.certificate.empty()) return Bound(options, std::make_unique<Served<httplib::Server>>(options));
  auto server = std::make_unique<Served<httplib::SSLServer>>(options, options.certificate.c_str(), options.key.c_str());
  if (!server->is_valid()) {
    return absl::InvalidArgumentError(absl::StrCat("--https-cert is ", Quoted(options.certificate),
                                                   " and --https-key is ", Quoted(options.key),
                                                   "; allowed: PEM files with a certificate and its private key"));
  }
  return Bound(options, std::move(server));
}

}  // namespace attune::dashboard
