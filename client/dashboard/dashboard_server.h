// The dashboard: its pages, /api/ in front of an attuned server's RPCs, and who may ask (docs/dashboard.md).
#ifndef ATTUNE_CLIENT_DASHBOARD_DASHBOARD_SERVER_H_
#define ATTUNE_CLIENT_DASHBOARD_DASHBOARD_SERVER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/clock.h"
#include "client/dashboard/guard.h"
#include "client/dashboard/http_message.h"
#include "client/dashboard/http_server.h"
#include "client/dashboard/pages.h"
#include "client/dashboard/password.h"
#include "client/dashboard/response_cache.h"

namespace attune::dashboard {

struct DashboardOptions {
  std::string listen = "127.0.0.1:7412";
  std::vector<std::string> host_names = {};  // beside this host's own
  std::string certificate = {};              // PEM files; empty: HTTP in clear
  std::string key = {};
  std::string password_file = {};  // empty: none is asked for
  std::string web_root = {};       // a folder with the pages; empty: those embedded
  std::string server = {};         // the attuned server's address, to be shown
  std::string version = {};        // of this program
  absl::Duration share_for = absl::Seconds(1);
  HttpServerOptions http = {};         // its address and files are set from the above
  const Clock* clock = Clock::Real();  // not owned; of how long answers are shared
};

class DashboardServer {
 public:
  // Listens when it returns. `client` is not owned; its server need not be reachable. InvalidArgument and
  // FailedPrecondition name the flag, its value and what is allowed.
  static absl::StatusOr<std::unique_ptr<DashboardServer>> Start(const DashboardOptions& options, Client* client);

  // "http://127.0.0.1:7412/".
  std::string url() const;

  // The answer, as the socket's peer gets it. Any thread.
  HttpResponse Handle(const HttpRequest& request);

 private:
  DashboardServer(const DashboardOptions& options, Client* client);

  HttpResponse Answer(const HttpRequest& request);
  HttpResponse Api(const std::string& name, const std::string& query);
  HttpResponse Status();

  const DashboardOptions options_;
  Client* const client_;
  // A server that does not answer leaves threads for the pages.
  const size_t most_api_calls_;
  std::atomic<size_t> api_calls_ = 0;
  const Pages pages_;
  ResponseCache cache_;
  std::string host_;  // "127.0.0.1:7412"
  std::unique_ptr<const Guard> guard_;
  std::optional<Password> password_;
  std::unique_ptr<HttpServer> http_;  // the last: it ends before what its threads use
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_DASHBOARD_SERVER_H_
