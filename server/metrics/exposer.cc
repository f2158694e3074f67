#include "server/metrics/exposer.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attune::metrics {

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& host, int port,
                                                        std::shared_ptr<prometheus::Collectable> metrics) {
  const std::string bracketed = absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host;
  const std::string wanted = absl::StrCat(bracketed, ":", port);
  std::unique_ptr<Exposer> exposer(new Exposer);
  exposer->metrics_ = std::move(metrics);
  try {
    // Few threads and short patience: whoever is slow holds up other scrapes, and nothing else.
    exposer->server_ = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", wanted, "num_threads", "2", "request_timeout_ms", "5000", "enable_keep_alive", "no"});
    exposer->server_->RegisterCollectable(exposer->metrics_);
    exposer->address_ = absl::StrCat(bracketed, ":", exposer->server_->GetListeningPorts().at(0));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("metrics: cannot listen on ", wanted, ": ", error.what()));
  }
  return exposer;
}

}  // namespace attune::metrics
