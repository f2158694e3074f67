// attuned: flags, wiring, signals.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
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
#include "server/base/log.h"
#include "server/service/attune_service.h"
#include "server/service/server.h"
#include "server/space/family.h"
#include "server/store/files.h"
#include "server/store/store.h"
#include "server/tuning/lookup.h"
#include "server/tuning/pending_tuner.h"
#include "server/tuning/tuner.h"
#include "server/workers/remembered_host.h"
#include "server/workers/workers.h"

ABSL_FLAG(std::vector<std::string>, listen, {"localhost:7411"},
          "addresses to serve on, comma-separated: host:port or unix:/path");
ABSL_FLAG(std::string, data_dir, "attune-data", "directory of the database and the compiled artifacts");
ABSL_FLAG(std::vector<std::string>, kernels_dir, {},
          "directories of kernel families, comma-separated; default: the ones installed beside the daemon");
ABSL_FLAG(std::string, worker, "", "the attune-worker executable; default: beside the daemon");
ABSL_FLAG(std::string, lock_dir, "/tmp/attune-locks",
          "directory of the device locks; the same for every daemon of this host");
ABSL_FLAG(int, compile_workers, 0, "compile worker processes; 0: one a core");
ABSL_FLAG(absl::Duration, compile_timeout, absl::Seconds(120), "a compile that takes longer is TIMEOUT");
ABSL_FLAG(absl::Duration, trial_timeout, absl::Seconds(10), "a trial that takes longer on the device is TIMEOUT");
ABSL_FLAG(absl::Duration, idle_release, absl::Seconds(60),
          "give the device's memory back after this long without work");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(15),
          "on SIGTERM, how long running trials and calls may take to end");
ABSL_FLAG(std::string, emulate, "", "run CUDA devices under the limits of this device profile, e.g. l4");
ABSL_FLAG(std::vector<std::string>, devices, {}, "use only these devices, comma-separated; default: all");
ABSL_FLAG(std::string, log_format, "text", "text or json");

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

// Blocks the ending signals in every thread to come, so that Wait alone sees them.
class EndingSignals {
 public:
  EndingSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  int Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }

 private:
  sigset_t set_;
};

absl::StatusOr<std::vector<std::shared_ptr<const space::Family>>> Families(const std::vector<std::string>& roots) {
  std::vector<std::shared_ptr<const space::Family>> all;
  for (const std::string& root : roots) {
    auto families = space::LoadFamilies(root);
    if (!families.ok()) return families.status();
    for (auto& family : *families) {
      for (const auto& other : all) {
        if (other->name() == family->name()) {
          return absl::InvalidArgumentError(
              absl::StrCat("kernels_dir: family '", family->name(), "' stands in two directories"));
        }
      }
      all.push_back(std::move(family));
    }
  }
  return all;
}

void LogHost(const workers::HostDescription& host) {
  for (const v1::BackendStatus& backend : host.backends) {
    if (backend.available()) {
      LogInfo("back end available",
              {{"backend", v1::Backend_Name(backend.backend())}, {"compiler", backend.compiler()}});
    } else {
      LogWarning("back end missing", {{"backend", v1::Backend_Name(backend.backend())}, {"reason", backend.reason()}});
    }
  }
  for (const v1::Device& device : host.devices) {
    LogInfo("device",
            {{"id", device.id()}, {"model", device.model()}, {"target", device.target()}, {"driver", device.driver()}});
  }
  if (host.devices.empty()) LogWarning("no device: stored answers are served, nothing can be tuned");
}

workers::WorkerOptions OptionsOfWorkers() {
  workers::WorkerOptions options;
  options.executable = absl::GetFlag(FLAGS_worker).empty() ? DefaultWorker() : absl::GetFlag(FLAGS_worker);
  options.compile_workers = absl::GetFlag(FLAGS_compile_workers);
  options.compile_timeout = absl::GetFlag(FLAGS_compile_timeout);
  options.trial_timeout = absl::GetFlag(FLAGS_trial_timeout);
  options.lock_dir = absl::GetFlag(FLAGS_lock_dir);
  options.emulate = absl::GetFlag(FLAGS_emulate);
  return options;
}

// What this host has, of the devices that --devices names.
absl::StatusOr<workers::HostDescription> Probe(const workers::WorkerOptions& options) {
  absl::StatusOr<workers::HostDescription> host = workers::ProbeHost(options);
  if (!host.ok()) return host.status();
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_devices);
  if (!wanted.empty()) {
    std::erase_if(host->devices, [&wanted](const v1::Device& device) {
      return std::find(wanted.begin(), wanted.end(), device.id()) == wanted.end();
    });
  }
  return host;
}

// The part of the daemon that answers from the store, for one description of the host. It works without a tuner, which
// may arrive later.
struct Front {
  workers::HostDescription host;
  std::unique_ptr<workers::CompilePool> compiler;
  std::unique_ptr<tuning::Lookup> lookup;
  tuning::PendingTuner tuner;
  std::unique_ptr<service::AttuneServiceImpl> service;
  std::unique_ptr<service::Server> server;
};

absl::StatusOr<std::unique_ptr<Front>> Serve(const std::vector<std::string>& addresses, workers::HostDescription host,
                                             const workers::WorkerOptions& options,
                                             const std::vector<std::shared_ptr<const space::Family>>& families,
                                             store::Store* store) {
  auto front = std::make_unique<Front>();
  front->host = std::move(host);
  front->compiler = workers::MakeCompilePool(options, front->host);
  tuning::World world{.devices = front->host.devices, .toolchains = {}, .families = families};
  for (const v1::BackendStatus& backend : front->host.backends) {
    if (auto toolchain = front->compiler->Toolchain(backend.backend()); toolchain.ok()) {
      world.toolchains[backend.backend()] = *toolchain;
    }
  }
  auto lookup = tuning::Lookup::Create(store, world);
  if (!lookup.ok()) return lookup.status();
  front->lookup = *std::move(lookup);
  front->service =
      std::make_unique<service::AttuneServiceImpl>(service::ServiceOptions{.tuner = &front->tuner,
                                                                           .lookup = front->lookup.get(),
                                                                           .store = store,
                                                                           .world = world,
                                                                           .backends = front->host.backends,
                                                                           .version = kVersion});
  auto server = service::Server::Start(addresses, front->service.get());
  if (!server.ok()) return server.status();
  front->server = *std::move(server);
  return front;
}

// Serves on the description that the last start left, while the host is probed; null when there is none.
absl::StatusOr<std::unique_ptr<Front>> ServeEarly(const std::string& host_file, const workers::WorkerOptions& options,
                                                  const std::vector<std::shared_ptr<const space::Family>>& families,
                                                  store::Store* store) {
  const absl::StatusOr<std::string> bytes = store::ReadFile(host_file);
  if (absl::IsNotFound(bytes.status())) return nullptr;
  absl::StatusOr<workers::HostDescription> remembered = bytes.ok() ? workers::ReadHost(*bytes) : bytes.status();
  if (!remembered.ok()) {
    LogWarning("nothing is served before the host is probed",
               {{"file", host_file}, {"reason", remembered.status().message()}});
    return nullptr;
  }
  auto front = Serve(absl::GetFlag(FLAGS_listen), *std::move(remembered), options, families, store);
  if (front.ok()) {
    LogInfo("answering from the store while the host is probed",
            {{"address", absl::StrJoin((*front)->server->addresses(), ",")}});
  }
  return front;
}

absl::Status Run(const EndingSignals& signals) {
  std::vector<std::string> kernels = absl::GetFlag(FLAGS_kernels_dir);
  if (kernels.empty()) kernels = DefaultKernels();
  auto families = Families(kernels);
  if (!families.ok()) return families.status();

  auto store = store::OpenSqliteStore({.directory = absl::GetFlag(FLAGS_data_dir)});
  if (!store.ok()) return store.status();

  const workers::WorkerOptions options = OptionsOfWorkers();
  const std::string host_file = absl::StrCat(absl::GetFlag(FLAGS_data_dir), "/", workers::HostFileName(options));
  auto front = ServeEarly(host_file, options, *families, store->get());
  if (!front.ok()) return front.status();
  const absl::StatusOr<workers::HostDescription> probed = Probe(options);
  if (!probed.ok()) {
    LogError("the host could not be probed; serving stored answers only", {{"error", probed.status().message()}});
  }
  // Without a probe there is no device to work on; look-ups go on as they were.
  const workers::HostDescription host = probed.ok() ? *probed : workers::HostDescription();
  LogHost(host);
  if (*front == nullptr || (probed.ok() && !workers::SameHost((*front)->host, host))) {
    std::vector<std::string> addresses = absl::GetFlag(FLAGS_listen);
    if (*front != nullptr) {
      LogWarning("the host has changed since the last start; its answers are made anew");
      addresses = (*front)->server->addresses();
      (*front)->server->Shutdown(absl::Seconds(1));
      front->reset();
    }
    front = Serve(addresses, host, options, *families, store->get());
    if (!front.ok()) return front.status();
  }
  if (probed.ok()) {
    if (absl::Status kept = store::ReplaceFile(host_file, workers::WriteHost(host)); !kept.ok()) {
      LogWarning("the next start may probe before it serves", {{"reason", kept.message()}});
    }
  }

  std::vector<std::unique_ptr<workers::DeviceWorker>> device_workers;
  tuning::TunerOptions tuner_options;
  tuner_options.store = store->get();
  tuner_options.compiler = (*front)->compiler.get();
  for (const v1::Device& device : host.devices) {
    device_workers.push_back(workers::MakeDeviceWorker(options, device));
    tuner_options.devices[device.id()] = device_workers.back().get();
  }
  tuner_options.families = *families;
  tuner_options.idle_release = absl::GetFlag(FLAGS_idle_release);
  tuner_options.promoted = [lookup = (*front)->lookup.get()](const v1::Incumbent& incumbent) {
    lookup->Changed(incumbent);
  };
  auto tuner = tuning::Tuner::Create(std::move(tuner_options));
  if (!tuner.ok()) return tuner.status();
  if (absl::Status resumed = (*tuner)->Resume(); !resumed.ok()) return resumed;
  (*front)->tuner.Arrive(tuner->get());
  LogInfo("serving", {{"address", absl::StrJoin((*front)->server->addresses(), ",")},
                      {"version", kVersion},
                      {"families", (*families).size()},
                      {"data_dir", absl::GetFlag(FLAGS_data_dir)}});

  const int signal = signals.Wait();
  const absl::Duration grace = absl::GetFlag(FLAGS_drain_timeout);
  LogInfo("draining", {{"signal", signal}, {"grace", absl::FormatDuration(grace)}});
  (*tuner)->Drain(grace);
  (*front)->server->Shutdown(grace);
  LogInfo("stopped");
  return absl::OkStatus();
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "attuned: finds, proves, keeps and serves the fastest attention kernel for a shape.\n"
      "  attuned --listen=localhost:7411 --data_dir=/var/lib/attune\n"
      "Flags may stand in a file: --flagfile=/etc/attune/attuned.flags. SIGTERM drains and stops.");
  absl::FlagsUsageConfig usage;
  usage.version_string = [] { return absl::StrCat("attuned ", ATTUNE_VERSION, "\n"); };
  usage.contains_helpshort_flags = [](absl::string_view file) { return absl::EndsWith(file, "server/main.cc"); };
  usage.contains_help_flags = usage.contains_helpshort_flags;
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    std::fprintf(stderr, "attuned: unexpected argument '%s'; `attuned --help` lists the flags\n", rest[1]);
    return 2;
  }
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format != "text" && format != "json") {
    std::fprintf(stderr, "attuned: --log_format is '%s'; allowed are text and json\n", format.c_str());
    return 2;
  }
  attune::SetLogFormat(format == "json" ? attune::LogFormat::kJson : attune::LogFormat::kText);

  const attune::EndingSignals signals;
  if (const absl::Status status = attune::Run(signals); !status.ok()) {
    attune::LogError("cannot serve", {{"error", status.message()}});
    return 1;
  }
  return 0;
}
