// Who may ask: pages of this server alone. A page of another origin can make a browser send requests here, and a name
// that it rebinds to 127.0.0.1 would make it our origin; both show in the request's headers.
#ifndef ATTUNE_CLIENT_DASHBOARD_GUARD_H_
#define ATTUNE_CLIENT_DASHBOARD_GUARD_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/dashboard/http_message.h"

namespace attune::dashboard {

// Sent with every response.
const std::vector<std::pair<std::string, std::string>>& SecurityHeaders();

// "NAME" or "NAME:PORT" of --host-name; InvalidArgument when it is neither.
absl::Status CheckHostName(absl::string_view name);

// Thread-safe.
class Guard {
 public:
  // `names`: those of CheckHostName, beside 127.0.0.1, localhost and [::1]; each with `port` where it has none.
  Guard(bool tls, int port, const std::vector<std::string>& names);

  // The refusal; nullopt when the request is let through.
  std::optional<HttpResponse> Refuse(const HttpRequest& request) const;

 private:
  bool IsOurs(absl::string_view host) const;

  const std::string scheme_;        // "http://"
  std::vector<std::string> hosts_;  // "localhost:7412", lower case
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_GUARD_H_
