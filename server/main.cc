// attuned: wiring, signals.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/attune/quote.h"
#include "server/base/cage_kernel.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/log_journal.h"
#include "server/catalog/fleet.h"
#include "server/catalog/host.h"
#include "server/daemon/check.h"
#include "server/daemon/chosen_devices.h"
#include "server/daemon/copy_from.h"
#include "server/daemon/edge/copy_keeper.h"
#include "server/daemon/edge/until_done.h"
#include "server/daemon/environment_flags.h"
#include "server/daemon/exposed_metrics.h"
#include "server/daemon/flags.h"
#include "server/daemon/host_beat.h"
#include "server/daemon/memory_arenas.h"
#include "server/daemon/memory_trim.h"
#include "server/daemon/opened_store.h"
#include "server/daemon/protobuf_log.h"
#include "server/daemon/query_frontend.h"
#include "server/daemon/served_watch.h"
#include "server/daemon/service_manager.h"
#include "server/daemon/settings.h"
#include "server/daemon/shutdown_signals.h"
#include "server/daemon/store_files_watch.h"
#include "server/daemon/tuning.h"
#include "server/jobs/on_miss.h"
#include "server/profile/tools.h"
#include "server/space/family.h"
#include "server/store/backups.h"
#include "server/store/files.h"
#include "server/store/hosts.h"
#include "server/store/retention_keeper.h"
#include "server/store/sqlite/maintenance/restore.h"
#include "server/store/store.h"
#include "server/supervisor/device_worker.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/remembered_host.h"
#include "server/supervisor/worker_options.h"

namespace attune {
namespace {

constexpr char kVersion[] = ATTUNE_VERSION;

std::filesystem::path ExecutableDirectory() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

// An installed daemon finds its files under its prefix, a built one in the source tree.
std::vector<std::string> DefaultKernels() {
  const std::filesystem::path installed = ExecutableDirectory() / "../share/attune/kernels_src";
  if (std::filesystem::exists(installed)) return {std::filesystem::canonical(installed).string()};
  return {ATTUNE_SOURCE_DIR "/kernels_src"};
}

std::string DefaultWorker() {
  for (const char* candidate : {"attune-worker", "../libexec/attune/attune-worker"}) {
    const std::filesystem::path path = ExecutableDirectory() / candidate;
    if (std::filesystem::exists(path)) return path.string();
  }
  return "attune-worker";
}

// What was said, and the installation's own kernels where nothing was.
Settings SettingsOfDaemon() {
  Settings settings = SettingsOfFlags();
  if (settings.kernels_dir.empty()) settings.kernels_dir = DefaultKernels();
  return settings;
}

void ConfigureLog(const Settings& settings) {
  const char* journal = std::getenv("JOURNAL_STREAM");
  PrefixLogWithPriorities(journal != nullptr && IsJournal(STDERR_FILENO, journal));
  SetLogFormat(settings.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warning", LogLevel::kWarning},
                                                  {"error", LogLevel::kError}};
  SetLogLevel(levels.at(settings.log_level));
}

// Connections and workers need more descriptors than the 1,024 that most hosts begin with.
void RaiseDescriptorLimit() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) LogWarning("the limit of open files stays as it is");
}

absl::StatusOr<std::vector<std::shared_ptr<const space::Family>>> Families(const std::vector<std::string>& roots) {
  space::LoadedFamilies loaded = space::LoadEveryFamily(roots);
  if (!loaded.mistakes.empty()) {
    const size_t others = loaded.mistakes.size() - 1;
    return absl::InvalidArgumentError(
        absl::StrCat(loaded.mistakes.front().message(),
                     others == 0 ? "" : absl::StrCat("; and ", others, " more: attuned --check=manifests names them")));
  }
  if (loaded.families.empty()) {
    LogWarning("no kernel family: nothing can be tuned", {{"kernels_dir", absl::StrJoin(roots, ",")}});
  }
  return std::move(loaded.families);
}

void LogHost(const supervisor::HostDescription& host) {
  for (const v1::BackendStatus& backend : host.backends) {
    if (backend.available()) {
      LogInfo("backend available",
              {{"backend", v1::Backend_Name(backend.backend())}, {"compiler", backend.compiler()}});
    } else {
      LogWarning("backend missing", {{"backend", v1::Backend_Name(backend.backend())}, {"reason", backend.reason()}});
    }
  }
  for (const v1::Device& device : host.devices) {
    LogInfo("device",
            {{"id", device.id()}, {"model", device.model()}, {"target", device.target()}, {"driver", device.driver()}});
  }
  for (const std::string& missing : MissingWalls()) LogWarning("workers are not fully caged", {{"reason", missing}});
  if (host.devices.empty())
    LogWarning("no device: stored answers are served, and only other hosts on the same store can tune");
}

supervisor::WorkerOptions OptionsOfWorkers(const Settings& settings) {
  supervisor::WorkerOptions options;
  options.executable = settings.worker.empty() ? DefaultWorker() : settings.worker;
  options.compile_workers = settings.compile_workers;
  options.compile_timeout = settings.compile_timeout;
  options.trial_timeout = settings.trial_timeout;
  options.lock_dir = settings.lock_dir;
  options.emulate = settings.emulate;
  options.verify_on_host = settings.verify == "host";
  return options;
}

std::string DevicesOf(const supervisor::HostDescription& host) {
  return absl::StrJoin(host.devices, ", ", [](std::string* out, const v1::Device& device) {
    absl::StrAppend(out, device.id(), " ", device.model(), " ", device.driver());
  });
}

// What metrics are labelled with.
void TellOfHost(const catalog::Host& host, const ExposedMetrics& metrics) {
  if (metrics.store() == nullptr) return;
  std::set<std::string> families;
  for (const auto& family : host.families.Now()) {
    if (family->manifest.role() != family::v1::ROLE_REFERENCE) families.insert(family->manifest.name());
  }
  metrics.store()->SetFamilies(std::move(families));
  metrics.workers()->SetDevices(host.devices);
}

// As other hosts are told of it.
v1::Host DescribeHost(const std::string& holder, const catalog::Host& host) {
  v1::Host described;
  described.set_name(store::HostName(holder));
  described.set_version(kVersion);
  *described.mutable_devices() = {host.devices.begin(), host.devices.end()};
  *described.mutable_backends() = {host.backends.begin(), host.backends.end()};
  return described;
}

// Null with a store of this daemon's own.
absl::StatusOr<std::shared_ptr<catalog::Fleet>> FleetOf(const OpenedStore& opened) {
  if (!opened.shared) return nullptr;
  auto fleet = std::make_shared<catalog::Fleet>();
  if (opened.copy != nullptr) {
    fleet->Set({opened.copy->hosts().begin(), opened.copy->hosts().end()});
    return fleet;
  }
  const absl::StatusOr<std::vector<v1::Host>> hosts = opened.store->hosts().List();
  if (!hosts.ok()) return hosts.status();
  fleet->Set(*hosts);
  return fleet;
}

// The store's limits, and what of it is knowledge on this host today.
store::Retention RetentionOf(const Settings& settings, const catalog::Host& host) {
  store::Retention retention;
  retention.trial_age = settings.trial_age;
  retention.job_age = settings.job_age;
  retention.artifact_age = settings.artifact_age;
  retention.retiming_age = settings.retiming_age;
  retention.database_bytes = settings.database_limit;
  retention.artifact_bytes = settings.artifact_limit;
  for (const v1::Device& device : host.devices) {
    const absl::StatusOr<std::string> toolchain = catalog::Toolchain(host, device.backend());
    if (!toolchain.ok()) continue;
    for (const auto& family : host.families.Now()) {
      if (family->manifest.backend() != device.backend()) continue;
      v1::Dependencies& today = retention.current.emplace_back();
      today.set_source_hash(family->source_hash);
      today.set_toolchain(*toolchain);
      today.set_driver(device.driver());
      today.set_device_fingerprint(device.fingerprint());
    }
  }
  return retention;
}

// How long the daemon may take to end after draining: workers are killed, the last calls answered, files closed.
constexpr absl::Duration kClosing = absl::Seconds(5);

absl::Status Run(const Settings& settings, ShutdownSignals& signals, ServiceManager& manager) {
  auto families = Families(settings.kernels_dir);
  if (!families.ok()) return families.status();

  const absl::StatusOr<ExposedMetrics> metrics = ExposedMetrics::Start(settings, kVersion);
  if (!metrics.ok()) return metrics.status();

  absl::StatusOr<OpenedStore> opened = OpenStore(settings, metrics->store());
  if (!opened.ok()) return opened.status();
  const std::unique_ptr<store::Store>& store = opened->store;
  store::Backups backups(store.get(), settings.backup_dir);
  const MemoryTrim trim;
  std::optional<StoreFilesWatch> files;
  if (metrics->store() != nullptr) files.emplace(settings.data_dir, backups, *metrics->store());

  supervisor::WorkerOptions options = OptionsOfWorkers(settings);
  options.metrics = metrics->workers();
  const std::string host_file = absl::StrCat(settings.data_dir, "/", supervisor::HostFileName(options));
  const absl::StatusOr<Guard> guard = OpenGuard(settings.data_dir);
  if (!guard.ok()) return guard.status();
  const absl::StatusOr<std::shared_ptr<catalog::Fleet>> fleet = FleetOf(*opened);
  if (!fleet.ok()) return fleet.status();
  FrontendMeans means{settings, *families,          *store,      backups, *guard, *metrics, kVersion,
                      *fleet,   opened->copy.get(), opened->away};
  ServedWatch::Since read{SteadyNow(), *fleet == nullptr ? 0 : (*fleet)->Known().size()};
  auto front = ServeEarly(means, host_file, options);
  if (!front.ok()) return front.status();
  if (*front != nullptr) {
    manager.Ready(absl::StrCat("answering from ", opened->copy == nullptr ? "the store" : "a copy",
                               "; the host is being probed"));
  }
  const absl::StatusOr<supervisor::HostDescription> probed = supervisor::ProbeHost(options);
  if (!probed.ok()) {
    LogError("the host could not be probed; serving stored answers only", {{"error", probed.status().message()}});
  }
  options.cage = probed.ok() && supervisor::CanCage(*probed);
  // Without a probe there is no device to work on; look-ups go on as they were.
  const ChosenDevices chosen = ChooseDevices(settings.devices, probed.ok() ? *probed : supervisor::HostDescription());
  for (const std::string& name : chosen.unknown) {
    if (!probed.ok()) break;  // nobody knows
    LogWarning("--devices names one that this host does not have", {{"device", name}, {"here", chosen.here}});
  }
  const supervisor::HostDescription& host = chosen.host;
  LogHost(host);
  if (*front == nullptr || (probed.ok() && !supervisor::SameHost((*front)->described, host))) {
    std::vector<std::string> addresses = settings.listen;
    if (*front != nullptr) {
      LogWarning("the host has changed since the last start; its answers are made anew",
                 {{"before", DevicesOf((*front)->described)}, {"now", DevicesOf(host)}});
      addresses = (*front)->server->addresses();
      (*front)->Close(absl::Seconds(1));
      front->reset();
    }
    front = Serve(means, addresses, host, options);
    if (!front.ok()) return front.status();
  }
  if (probed.ok()) {
    if (absl::Status kept = store::ReplaceFile(host_file, supervisor::WriteHost(*probed)); !kept.ok()) {
      LogWarning("the next start may probe before it serves", {{"reason", kept.message()}});
    }
  }

  TellOfHost((*front)->host, *metrics);
  std::vector<std::unique_ptr<supervisor::DeviceWorker>> device_workers;
  std::map<std::string, supervisor::DeviceWorker*> workers;
  for (const v1::Device& device : host.devices) {
    device_workers.push_back(supervisor::MakeDeviceWorker(options, device));
    workers[device.id()] = device_workers.back().get();
  }
  std::unique_ptr<HostBeat> beat;
  std::optional<CopyKeeper> copies;   // outlives `served`, which tells it of changes
  std::optional<ServedWatch> served;  // outlives `tuning`, whose threads have it look; made before they have work
  const std::unique_ptr<profile::Tools> tools =
      profile::MakeTools({.worker = options, .ncu = settings.ncu, .compute_sanitizer = settings.compute_sanitizer});
  auto tuning =
      Tuning::Create({.host = (*front)->host,
                      .store = *store,
                      .results = *(*front)->results,
                      .compiler = *(*front)->compiler,
                      .devices = std::move(workers),
                      .idle_release = settings.idle_release,
                      .holder = opened->holder,
                      .lease = opened->shared ? store::kHostTtl : store::kDefaultLease,
                      .shared = opened->shared,
                      .takes_work = [&beat] { return !beat->draining(); },
                      .ended_elsewhere =
                          [&served] {
                            if (served.has_value()) served->LookNow();
                          },
                      .library = LibraryOf(settings),
                      .submission_times = {.trial = settings.submission_trial_timeout, .all = settings.submission_time},
                      .tools = tools.get(),
                      .profile_time = settings.profile_time,
                      .metrics = metrics->jobs(),
                      .models = (*front)->forecaster.get()});
  if (!tuning.ok()) return tuning.status();
  jobs::Tuner& tuner = (*tuning)->tuner();
  // Learned from before the first search begins, where that takes a few seconds to come.
  for (const v1::Device& device : (*front)->host.devices) (*front)->forecaster->Model(device, v1::POLICY_HOT);
  const auto join = [&]() -> absl::Status {
    if (beat == nullptr) {
      absl::StatusOr<std::unique_ptr<HostBeat>> started =
          HostBeat::Start(store->hosts(), DescribeHost(opened->holder, (*front)->host),
                          [fleet = *fleet, counted = metrics->hosts()](const std::vector<v1::Host>& hosts) {
                            if (fleet != nullptr) fleet->Set(hosts);
                            if (counted != nullptr) counted->Set(hosts);
                          });
      if (!started.ok()) return started.status();
      beat = *std::move(started);
    }
    return tuner.Resume();
  };
  const auto watch = [&] {
    copies.emplace(*store, opened->database, settings.data_dir);
    served.emplace(*store, *(*front)->results, **fleet, read, ServedWatch::kPeriod, [&copies] { copies->Changed(); });
  };
  if (opened->copy == nullptr) {
    if (opened->shared) watch();
    if (absl::Status joined = join(); !joined.ok()) return joined;
  } else {
    signals.Serving();
    manager.Ready("answering from a copy; the database does not answer");
    (*front)->server->SetCanTune(true);  // as where the database went later: who asks is told when to try again
    LogInfo("look-ups are served from the copy",
            {{"address", absl::StrJoin((*front)->server->addresses(), ",")}, {"version", kVersion}});
    const auto come_back = [&]() -> absl::Status {
      if (served.has_value()) return join();  // answers are the store's already
      if (absl::Status prepared = opened->prepare(); !prepared.ok()) return prepared;
      read = {SteadyNow(), (*fleet)->Known().size()};
      if (absl::Status anew = ReadAnew(means, **front); !anew.ok()) return anew;
      watch();  // they say no more that they are of a copy
      return join();
    };
    if (!TryUntilDone(come_back, [&](absl::Duration time) { return !signals.WaitFor(time); })) {
      LogInfo("stopped before the database was back", {{"signal", signals.Wait()}});
      manager.Stopping("the database was not back");
      served.reset();
      copies.reset();
      (*front)->compiler->Shutdown();
      (*front)->Close(kClosing / 2);
      return absl::OkStatus();
    }
    LogInfo("the database is back: this daemon is a member of its fleet", {{"database", opened->database}});
    means.copy = nullptr;
    opened->copy.reset();
  }
  (*front)->tuner.Arrive(&tuner);
  std::optional<jobs::OnMiss> on_miss;
  if (settings.on_miss == "check" || settings.on_miss == "tune") {
    const QueryFrontend& here = **front;
    on_miss.emplace(jobs::OnMiss::Means{tuner, *here.misses, *here.supply, *store, here.host},
                    jobs::OnMiss::Options{
                        .what = settings.on_miss == "check" ? jobs::OnMiss::What::kCheck : jobs::OnMiss::What::kTune,
                        .per_hour = settings.on_miss_per_hour,
                        .metrics = metrics->jobs()});
    on_miss->Start();
  }
  // Without a probe nobody knows which bad verdicts are of today.
  std::optional<store::RetentionKeeper> keeper;
  if (probed.ok()) {
    keeper.emplace(store.get(), RetentionOf(settings, (*front)->host), absl::Minutes(10), metrics->store());
  }
  // Without devices among others it takes requests for theirs.
  (*front)->server->SetCanTune(!host.devices.empty() || opened->shared);
  signals.Serving();
  const char* const without = opened->shared ? "serving; a gateway: other hosts tune" : "serving; no device to tune on";
  manager.Ready(host.devices.empty() ? without : "serving");
  LogInfo("serving", {{"address", absl::StrJoin((*front)->server->addresses(), ",")},
                      {"version", kVersion},
                      {"families", (*families).size()},
                      {"data_dir", settings.data_dir},
                      {"store", opened->shared ? absl::StrCat("postgresql, as ", opened->holder) : "sqlite"},
                      {"lock_dir", settings.lock_dir}});

  const std::string signal = signals.Wait();
  LogInfo("draining", {{"signal", signal}, {"grace", absl::FormatDuration(settings.drain_timeout)}});
  manager.Stopping(absl::StrCat("draining on ", signal));
  (*front)->server->SetCanTune(false);
  keeper.reset();
  on_miss.reset();
  tuner.Drain(settings.drain_timeout);
  // A trial that hangs ends with its worker; its job goes on at the next start.
  for (const auto& worker : device_workers) worker->Shutdown();
  (*front)->compiler->Shutdown();
  (*front)->Close(kClosing / 2);
  return absl::OkStatus();
}

// `attuned --restore`; the exit code.
int RestoreStore(const std::string& backup, const std::string& data_dir) {
  const absl::StatusOr<store::Restored> restored = store::Restore(backup, data_dir);
  if (!restored.ok()) {
    std::cerr << "attuned: " << restored.status().message() << "\n";
    return 1;
  }
  std::cout << "restored " << backup << " into " << data_dir << ": " << restored->trials << " trials, "
            << restored->incumbents << " incumbents, " << restored->artifacts << " artifacts, " << restored->jobs
            << " operations\n";
  for (const std::string& why : restored->left_out) {
    std::cout << "  left out, until a tuning compiles it again: " << why << "\n";
  }
  return 0;
}

bool CheckAll(const Settings& settings, const Checks& checks) {
  const auto probe = [&settings] {
    SetLogLevel(LogLevel::kError);  // the report is what is asked for
    return supervisor::ProbeHost(OptionsOfWorkers(settings));
  };
  return Check(settings, checks, probe, std::cout);
}

// abseil names every flag that it cannot parse and then ends the process: --check still says what else is wrong.
bool flags_parsed = false;
void CheckWhatWasParsed() {
  const std::string what = absl::GetFlag(FLAGS_check);
  if (flags_parsed || what.empty()) return;
  absl::StatusOr<Checks> checks = ParseChecks(what);
  if (!checks.ok()) return;
  checks->flags_parsed = false;
  CheckAll(SettingsOfDaemon(), *checks);
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  attune::LimitMemoryArenas();
  absl::SetProgramUsageMessage(
      "finds, proves, keeps and serves the fastest attention kernel for a shape.\n"
      "  attuned --listen=localhost:7411 --data_dir=/var/lib/attune\n"
      "  attuned --check\n"
      "  attuned --restore=/var/lib/attune-backup/20261122T073015Z --data_dir=/var/lib/attune\n"
      "  attuned --copy_from=/var/lib/attune --store=postgresql://attune@db.example/attune\n"
      "Flags may stand in a file: --flagfile=/etc/attune/attuned.flags; or in the environment, where the command line\n"
      "says nothing: ATTUNED_DATA_DIR=/var/lib/attune. SIGTERM, SIGINT and SIGHUP drain and stop.");
  absl::FlagsUsageConfig usage;
  usage.version_string = [] { return absl::StrCat("attuned ", ATTUNE_VERSION, "\n"); };
  usage.contains_helpshort_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "server/daemon/flags.cc");
  };
  usage.contains_help_flags = usage.contains_helpshort_flags;
  absl::SetFlagsUsageConfig(usage);
  absl::StatusOr<std::vector<std::string>> of_environment = attune::FlagsOfEnvironment(environ);
  if (!of_environment.ok()) {
    std::cerr << "attuned: " << of_environment.status().message() << "\n";
    return 2;
  }
  std::vector<char*> arguments = {argv[0]};
  for (std::string& flag : *of_environment) arguments.push_back(flag.data());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  std::string check_all = "--check=all";  // what --check alone means; abseil knows no flag with an optional value
  for (char*& argument : arguments) {
    if (absl::string_view(argument) == "--check") argument = check_all.data();
  }
  std::atexit(attune::CheckWhatWasParsed);
  const std::vector<char*> rest = absl::ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
  attune::flags_parsed = true;
  if (rest.size() > 1) {
    std::cerr << "attuned: unexpected argument " << attune::Quoted(rest[1]) << "; `attuned --help` lists the flags\n";
    return 2;
  }
  const attune::Settings settings = attune::SettingsOfDaemon();
  if (const std::string what = absl::GetFlag(FLAGS_check); !what.empty()) {
    const absl::StatusOr<attune::Checks> checks = attune::ParseChecks(what);
    if (checks.ok()) return attune::CheckAll(settings, *checks) ? 0 : 1;
    std::cerr << "attuned: " << checks.status().message() << "\n";
    return 2;
  }
  if (const std::string backup = absl::GetFlag(FLAGS_restore); !backup.empty()) {
    if (!absl::GetFlag(FLAGS_copy_from).empty()) {
      std::cerr << "attuned: --restore and --copy_from both make the store; leave one of them out\n";
      return 2;
    }
    if (!settings.store.empty()) {
      std::cerr << "attuned: --restore makes a store in --data_dir; one on PostgreSQL (--store) is restored there\n";
      return 2;
    }
    return attune::RestoreStore(backup, settings.data_dir);
  }
  if (const std::string from = absl::GetFlag(FLAGS_copy_from); !from.empty()) {
    return attune::CopyFrom(from, settings, std::cout, std::cerr);
  }
  const std::vector<std::string> mistakes = attune::MistakesIn(settings);
  for (const std::string& mistake : mistakes) std::cerr << "attuned: " << mistake << "\n";
  if (!mistakes.empty()) return 2;
  attune::ConfigureLog(settings);
  attune::RouteProtobufLog();
  // Workers run as the same user: none may read the daemon's memory or take its descriptors.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  attune::RaiseDescriptorLimit();

  attune::ShutdownSignals signals;
  signals.Watch(settings.drain_timeout + attune::kClosing);
  attune::ServiceManager manager(
      attune::ServiceManagerOf(getenv("NOTIFY_SOCKET"), getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), getpid()));
  if (const absl::Status status = attune::Run(settings, signals, manager); !status.ok()) {
    attune::LogError("cannot serve", {{"error", status.message()}});
    return 1;
  }
  attune::LogInfo("stopped");
  return 0;
}
