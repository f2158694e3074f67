// The part of the daemon that answers from the store.
#ifndef ATTUNE_SERVER_DAEMON_QUERY_FRONTEND_H_
#define ATTUNE_SERVER_DAEMON_QUERY_FRONTEND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/served/v1/served.pb.h"
#include "server/access/audit_log.h"
#include "server/access/tokens.h"
#include "server/catalog/host.h"
#include "server/catalog/misses.h"
#include "server/catalog/results.h"
#include "server/daemon/exposed_metrics.h"
#include "server/daemon/settings.h"
#include "server/forecast/forecaster.h"
#include "server/jobs/pending_tuner.h"
#include "server/service/access_service.h"
#include "server/service/attune_service.h"
#include "server/service/blobs/blob_service.h"
#include "server/service/fleet/fleet_service.h"
#include "server/service/server.h"
#include "server/space/family.h"
#include "server/store/backups.h"
#include "server/store/store.h"
#include "server/submit/submissions.h"
#include "server/supervisor/compile_pool.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"
#include "server/trials/code_on_demand.h"

namespace attune {

// For one description of the host. It works without a tuner, which may arrive later.
struct QueryFrontend {
  supervisor::HostDescription described;
  catalog::Host host;  // as described
  std::unique_ptr<submit::Submissions> submissions;
  std::unique_ptr<supervisor::CompilePool> compiler;
  std::unique_ptr<trials::CodeOnDemand> supply;  // null with --on_miss=off
  std::unique_ptr<forecast::Forecaster> forecaster;
  std::unique_ptr<catalog::Results> results;
  std::unique_ptr<catalog::Misses> misses;
  jobs::PendingTuner tuner;
  std::unique_ptr<service::AttuneServiceImpl> service;
  std::unique_ptr<service::BlobServiceImpl> blobs;
  std::unique_ptr<service::AccessServiceImpl> access;
  std::unique_ptr<service::FleetServiceImpl> fleet;
  std::unique_ptr<service::Server> server;

  // Calls in flight have `grace` to end; those that wait for code end at once.
  void Close(absl::Duration grace) {
    if (supply != nullptr) supply->Shutdown();
    forecaster->Shutdown();
    server->Shutdown(grace);
  }
};

// What is kept of who may call, and of who did.
struct Guard {
  std::unique_ptr<access::AuditLog> audit;
  std::unique_ptr<access::Tokens> tokens;
};

absl::StatusOr<Guard> OpenGuard(const std::string& data_dir);

// What every frontend of a daemon shares. All of it lives longer.
struct FrontendMeans {
  const Settings& settings;
  const std::vector<std::shared_ptr<const space::Family>>& families;
  store::Store& store;
  store::Backups& backups;
  const Guard& guard;
  const ExposedMetrics& metrics;
  std::string version;
  std::shared_ptr<catalog::Fleet> fleet = nullptr;  // where other hosts have the store open, too
  // While the store is away: what is answered from, until ReadAnew, and why.
  const served::v1::Copy* copy = nullptr;
  absl::Status away = absl::OkStatus();
};

absl::StatusOr<std::unique_ptr<QueryFrontend>> Serve(const FrontendMeans& means,
                                                     const std::vector<std::string>& addresses,
                                                     supervisor::HostDescription host,
                                                     const supervisor::WorkerOptions& options);

// Serves on the description that the last start left in `host_file`, while the host is probed; null when there is none.
absl::StatusOr<std::unique_ptr<QueryFrontend>> ServeEarly(const FrontendMeans& means, const std::string& host_file,
                                                          supervisor::WorkerOptions options);

// What a frontend has from a copy it reads from the store, which has come back. After an error it still answers from
// the copy, and this may be tried again.
absl::Status ReadAnew(const FrontendMeans& means, QueryFrontend& front);

// Whose libraries submissions may include.
std::string LibraryOf(const Settings& settings);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_QUERY_FRONTEND_H_
