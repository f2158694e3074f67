#include "server/daemon/query_frontend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/cage_kernel.h"
#include "server/base/log.h"
#include "server/catalog/copy/results_of_copy.h"
#include "server/daemon/chosen_devices.h"
#include "server/store/files.h"
#include "server/supervisor/remembered_host.h"

namespace attune {

std::string LibraryOf(const Settings& settings) {
  return settings.kernels_dir.empty() ? "" : settings.kernels_dir.front();
}

absl::StatusOr<Guard> OpenGuard(const std::string& data_dir) {
  auto audit = access::AuditLog::Open(data_dir);
  if (!audit.ok()) return audit.status();
  auto tokens = access::Tokens::Open(absl::StrCat(data_dir, "/tokens.binpb"));
  if (!tokens.ok()) return tokens.status();
  return Guard{*std::move(audit), *std::move(tokens)};
}

absl::StatusOr<std::unique_ptr<QueryFrontend>> Serve(const FrontendMeans& means,
                                                     const std::vector<std::string>& addresses,
                                                     supervisor::HostDescription host,
                                                     const supervisor::WorkerOptions& options) {
  auto front = std::make_unique<QueryFrontend>();
  front->described = std::move(host);
  front->host = {front->described.devices, front->described.backends, means.families, means.fleet};
  front->submissions = std::make_unique<submit::Submissions>(means.store, front->host, LibraryOf(means.settings));
  if (means.copy != nullptr) {
    front->submissions->AddCopied(*means.copy);
    front->tuner.SayMeanwhile(means.away);
  } else if (absl::Status added = front->submissions->AddAdopted(); !added.ok()) {
    return added;
  }
  front->compiler = supervisor::MakeCompilePool(options, front->described);
  if (means.settings.on_miss != "off") {
    front->supply = std::make_unique<trials::CodeOnDemand>(means.store, *front->compiler, front->host);
  }
  front->forecaster = std::make_unique<forecast::Forecaster>(means.store, front->host);
  if (means.copy != nullptr) {
    front->results =
        catalog::LoadFromCopy(*means.copy, means.store, front->host, front->supply.get(), front->forecaster.get());
  } else {
    auto results = catalog::Results::Load(means.store, front->host, front->supply.get(), front->forecaster.get());
    if (!results.ok()) return results.status();
    front->results = *std::move(results);
  }
  front->misses = std::make_unique<catalog::Misses>(
      [known = front->results.get()](const catalog::ResultKey& key) { return known->IsTuned(key); });
  front->service =
      std::make_unique<service::AttuneServiceImpl>(service::ServiceOptions{.tuner = &front->tuner,
                                                                           .results = front->results.get(),
                                                                           .supply = front->supply.get(),
                                                                           .misses = front->misses.get(),
                                                                           .store = &means.store,
                                                                           .backups = &means.backups,
                                                                           .submissions = front->submissions.get(),
                                                                           .host = &front->host,
                                                                           .answers = means.metrics.answers(),
                                                                           .version = means.version,
                                                                           .warnings = MissingWalls()});
  auto options_of_server = ServerOptionsOf(means.settings);
  if (!options_of_server.ok()) return options_of_server.status();
  options_of_server->audit = means.guard.audit.get();
  options_of_server->tokens = means.guard.tokens.get();
  options_of_server->calls = means.metrics.calls();
  front->blobs = std::make_unique<service::BlobServiceImpl>(&means.store.blobs());
  front->access = std::make_unique<service::AccessServiceImpl>(means.guard.tokens.get());
  front->fleet = std::make_unique<service::FleetServiceImpl>(&means.store);
  auto server = service::Server::Start(
      addresses, {front->service.get(), front->blobs.get(), front->access.get(), front->fleet.get()},
      *std::move(options_of_server));
  if (!server.ok()) return server.status();
  front->server = *std::move(server);
  return front;
}

absl::Status ReadAnew(const FrontendMeans& means, QueryFrontend& front) {
  absl::StatusOr<std::vector<v1::Host>> hosts = means.store.hosts().List();
  if (!hosts.ok()) return hosts.status();
  means.fleet->Set(*hosts);
  const absl::Status families = front.submissions->ReadAnew(*means.copy);
  return families.ok() ? front.results->Reload() : families;
}

absl::StatusOr<std::unique_ptr<QueryFrontend>> ServeEarly(const FrontendMeans& means, const std::string& host_file,
                                                          supervisor::WorkerOptions options) {
  const absl::StatusOr<std::string> bytes = store::ReadFile(host_file);
  if (absl::IsNotFound(bytes.status())) return nullptr;
  absl::StatusOr<supervisor::HostDescription> remembered = bytes.ok() ? supervisor::ReadHost(*bytes) : bytes.status();
  if (!remembered.ok()) {
    LogWarning("nothing is served before the host is probed",
               {{"file", host_file}, {"reason", remembered.status().message()}});
    return nullptr;
  }
  options.cage = supervisor::CanCage(*remembered);
  auto front =
      Serve(means, means.settings.listen, ChooseDevices(means.settings.devices, *std::move(remembered)).host, options);
  if (front.ok()) {
    LogInfo(means.copy != nullptr ? "answering from the copy while the host is probed"
                                  : "answering from the store while the host is probed",
            {{"address", absl::StrJoin((*front)->server->addresses(), ",")}});
  }
  return front;
}

}  // namespace attune
