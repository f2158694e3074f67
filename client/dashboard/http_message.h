// A request and its answer, as everything here sees them; only http_server.cc knows the HTTP library.
#ifndef ATTUNE_CLIENT_DASHBOARD_HTTP_MESSAGE_H_
#define ATTUNE_CLIENT_DASHBOARD_HTTP_MESSAGE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace attune::dashboard {

struct IgnoreCase {
  bool operator()(absl::string_view a, absl::string_view b) const;
};

struct HttpRequest {
  std::string method = "GET";
  std::string path = "/";  // as it was sent, nothing decoded
  std::string query = {};  // what follows the '?'
  std::multimap<std::string, std::string, IgnoreCase> headers = {};

  // The first of this name; empty when there is none.
  std::string header(absl::string_view name) const;
};

// The bytes of an answer, made once and shared by all that are sent them.
struct Content {
  std::string type;
  std::string plain;
  std::string gzip;  // empty: not worth it
  std::string etag;  // weak: the same for both forms
};
using ContentPtr = std::shared_ptr<const Content>;

// Hashes and compresses `bytes`.
ContentPtr MakeContent(std::string type, std::string bytes);

struct HttpResponse {
  int status = 200;
  ContentPtr content = nullptr;  // null: no body
  std::vector<std::pair<std::string, std::string>> headers = {};
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_HTTP_MESSAGE_H_
