#include "server/daemon/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "proto/attune/quote.h"
#include "server/access/certificates.h"
#include "server/access/local_users.h"
#include "server/access/role.h"
#include "server/access/tls_files.h"
#include "server/base/device_profile.h"
#include "server/base/lock_directory.h"
#include "server/daemon/metrics_address.h"
#include "server/daemon/writable_directory.h"
#include "server/service/listen_address.h"
#include "server/store/postgresql/connection.h"

namespace attune {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostMissesPerHour = 3600;
constexpr int64_t kMostQuota = 1'000'000;
constexpr absl::Duration kLeastTimeout = absl::Milliseconds(100);
constexpr absl::Duration kMostTimeout = absl::Hours(1);

class Mistakes {
 public:
  template <typename... What>
  void Add(absl::string_view flag, const What&... what) {
    all_.push_back(absl::StrCat("--", flag, what...));
  }
  // One that begins with the flag's name.
  void AddText(absl::string_view text) { all_.push_back(absl::StrCat("--", text)); }
  void Duration(absl::string_view flag, absl::Duration value, absl::Duration least, absl::Duration most) {
    if (value >= least && value <= most) return;
    Add(flag, " is ", absl::FormatDuration(value), "; allowed: ", absl::FormatDuration(least), " to ",
        absl::FormatDuration(most));
  }
  template <typename Choices>
  void Choice(absl::string_view flag, const std::string& value, const Choices& choices) {
    if (std::find(std::begin(choices), std::end(choices), value) != std::end(choices)) return;
    Add(flag, " is ", Quoted(value), "; allowed: ", absl::StrJoin(choices, ", "));
  }
  std::vector<std::string> Take() { return std::move(all_); }

 private:
  std::vector<std::string> all_;
};

access::TlsFiles TlsFilesOf(const Settings& settings) {
  return {settings.tls_cert, settings.tls_key, settings.tls_client_ca};
}

void MistakesInTls(const Settings& settings, Mistakes& mistakes) {
  access::Certificates clients(access::Role::kNone);
  if (absl::Status assigned = clients.Assign(settings.cert_roles); !assigned.ok()) {
    mistakes.Add("cert_roles", ": ", assigned.message());
  }
  for (const std::string& mistake : access::MistakesIn(TlsFilesOf(settings), absl::Now())) mistakes.AddText(mistake);
  if (!settings.cert_roles.empty() && settings.tls_client_ca.empty()) {
    mistakes.Add("cert_roles", " is set, without --tls_client_ca, who signs clients' certificates");
  }
  if (settings.insecure && !settings.tls_cert.empty()) {
    mistakes.Add("insecure", " is set, and --tls_cert, which has every TCP address encrypted; leave one of them out");
  }
}

void MistakesInStore(const Settings& settings, Mistakes& mistakes) {
  if (settings.data_dir.empty()) mistakes.Add("data_dir", " is empty; it must name a directory");
  if (settings.store.empty()) return;
  if (!store::postgresql::IsUrl(settings.store)) {
    // Not quoted: it may have a password in it.
    mistakes.Add("store", " begins with neither postgresql:// nor postgres://; leave it out for SQLite in --data_dir");
  } else if (absl::Status target = store::postgresql::CheckTarget(settings.store); !target.ok()) {
    mistakes.Add("store", ": ", target.message());
  }
}

}  // namespace

std::vector<std::string> MistakesInStore(const Settings& settings) {
  Mistakes mistakes;
  MistakesInStore(settings, mistakes);
  return mistakes.Take();
}

std::vector<std::string> MistakesIn(const Settings& settings) {
  Mistakes mistakes;
  if (settings.listen.empty()) mistakes.Add("listen", " is empty; give host:port or unix:/path");
  for (const std::string& address : settings.listen) {
    const absl::StatusOr<service::ListenAddress> parsed = service::ParseListenAddress(address);
    if (!parsed.ok()) {
      mistakes.Add("listen", ": ", parsed.status().message());
    } else if (absl::Status reach = service::CheckReach(*parsed, address);
               !settings.insecure && settings.tls_cert.empty() && !reach.ok()) {
      mistakes.Add("listen", ": ", reach.message());
    }
  }
  for (const auto& [flag, role] :
       {std::pair("anonymous_role", settings.anonymous_role), std::pair("socket_role", settings.socket_role),
        std::pair("cert_role", settings.cert_role)}) {
    if (const auto parsed = access::ParseRole(role); !parsed.ok()) {
      mistakes.Add(flag, " is ", parsed.status().message());
    }
  }
  access::LocalUsers users(geteuid(), access::Role::kNone);
  if (absl::Status assigned = users.Assign(settings.user_roles); !assigned.ok()) {
    mistakes.Add("user_roles", ": ", assigned.message());
  }
  MistakesInTls(settings, mistakes);
  for (const auto& [flag, quota] : {std::pair("quota_operations", settings.quota_operations),
                                    std::pair("quota_requests", settings.quota_requests)}) {
    if (quota < 0 || quota > kMostQuota) mistakes.Add(flag, " is ", quota, "; allowed: 0 (none) to ", kMostQuota);
  }
  if (settings.quota_device_time != absl::ZeroDuration()) {
    mistakes.Duration("quota_device_time", settings.quota_device_time, absl::Seconds(1), absl::Hours(24 * 1000));
  }
  MistakesInStore(settings, mistakes);
  if (!settings.backup_dir.empty()) {
    if (!settings.store.empty()) {
      mistakes.Add("backup_dir", " is set, and --store: PostgreSQL's own tools (pg_dump) back that up");
    }
    if (IsSameDirectory(settings.backup_dir, settings.data_dir)) {
      mistakes.Add("backup_dir", " is ", Quoted(settings.backup_dir),
                   ", which is --data_dir as well; a backup must not be in the store");
    } else if (const std::string why = WhyNotMade(settings.backup_dir); !why.empty()) {
      mistakes.Add("backup_dir", ": ", why);
    }
  }
  for (const std::string& directory : settings.kernels_dir) {
    if (directory.empty()) mistakes.Add("kernels_dir", " has an empty name; give directories, comma-separated");
  }
  for (const std::string& device : settings.devices) {
    if (device.empty())
      mistakes.Add("devices", " has an empty name; give ids such as cuda:0 or classes such as l4, comma-separated");
  }
  if (absl::Status status = CheckLockDirectory(settings.lock_dir); !status.ok()) mistakes.AddText(status.message());
  if (!settings.worker.empty() && ::access(settings.worker.c_str(), X_OK) != 0) {
    mistakes.Add("worker", " is ", Quoted(settings.worker), ", which is no executable file");
  }
  if (settings.compile_workers < 0 || settings.compile_workers > kMostWorkers) {
    mistakes.Add("compile_workers", " is ", settings.compile_workers, "; allowed: 0 (one a core) to ", kMostWorkers);
  }
  mistakes.Duration("compile_timeout", settings.compile_timeout, kLeastTimeout, kMostTimeout);
  mistakes.Duration("trial_timeout", settings.trial_timeout, kLeastTimeout, kMostTimeout);
  mistakes.Duration("idle_release", settings.idle_release, absl::ZeroDuration(), absl::Hours(24 * 365));
  mistakes.Duration("drain_timeout", settings.drain_timeout, absl::ZeroDuration(), kMostTimeout);
  for (const auto& [flag, age] :
       {std::pair("trial_age", settings.trial_age), std::pair("job_age", settings.job_age),
        std::pair("artifact_age", settings.artifact_age), std::pair("retiming_age", settings.retiming_age)}) {
    mistakes.Duration(flag, age, absl::Hours(1), absl::InfiniteDuration());
  }
  mistakes.Choice("verify", settings.verify, std::vector<std::string>{"device", "host"});
  if (!settings.emulate.empty()) mistakes.Choice("emulate", settings.emulate, DeviceProfileNames());
  mistakes.Choice("on_miss", settings.on_miss, std::vector<std::string>{"off", "compile", "check", "tune"});
  if (settings.on_miss_per_hour < 1 || settings.on_miss_per_hour > kMostMissesPerHour) {
    mistakes.Add("on_miss_per_hour", " is ", settings.on_miss_per_hour, "; allowed: 1 to ", kMostMissesPerHour);
  }
  mistakes.Duration("submission_trial_timeout", settings.submission_trial_timeout, kLeastTimeout, kMostTimeout);
  mistakes.Duration("submission_time", settings.submission_time, absl::Seconds(1), absl::Hours(24));
  mistakes.Duration("profile_time", settings.profile_time, absl::Seconds(1), absl::Minutes(10));
  if (!settings.metrics_listen.empty()) {
    const auto address = ParseMetricsAddress(settings.metrics_listen, settings.metrics_insecure);
    if (!address.ok()) mistakes.Add("metrics_listen", ": ", address.status().message());
  } else if (settings.metrics_insecure) {
    mistakes.Add("metrics_insecure", " is set, without --metrics_listen");
  }
  mistakes.Choice("log_format", settings.log_format, std::vector<std::string>{"text", "json"});
  mistakes.Choice("log_level", settings.log_level, std::vector<std::string>{"debug", "info", "warning", "error"});
  return mistakes.Take();
}

absl::StatusOr<service::ServerOptions> ServerOptionsOf(const Settings& settings) {
  const absl::StatusOr<access::Role> anonymous = access::ParseRole(settings.anonymous_role);
  if (!anonymous.ok()) return anonymous.status();
  const absl::StatusOr<access::Role> others = access::ParseRole(settings.socket_role);
  if (!others.ok()) return others.status();
  service::ServerOptions options{.users = {geteuid(), *others}, .anonymous = *anonymous, .insecure = settings.insecure};
  options.quotas = {.operations = settings.quota_operations,
                    .device_seconds = absl::ToInt64Seconds(settings.quota_device_time),
                    .requests_per_second = settings.quota_requests,
                    .request_bytes = settings.quota_request_size};
  if (absl::Status assigned = options.users.Assign(settings.user_roles); !assigned.ok()) return assigned;
  if (settings.tls_cert.empty()) return options;
  const absl::StatusOr<access::Role> named = access::ParseRole(settings.cert_role);
  if (!named.ok()) return named.status();
  options.tls = {.files = TlsFilesOf(settings), .clients = access::Certificates(*named)};
  if (absl::Status assigned = options.tls->clients.Assign(settings.cert_roles); !assigned.ok()) return assigned;
  return options;
}

std::vector<std::string> DefaultListen() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string directory;
  if (geteuid() == 0) {
    directory = "/run/attune";
  } else if (runtime != nullptr && *runtime != '\0') {
    directory = absl::StrCat(runtime, "/attune");
  }
  if (directory.empty() || !WhyNotMade(directory).empty()) return {"localhost:7411"};
  return {absl::StrCat("unix:", directory, "/attuned.sock"), "localhost:7411"};
}

std::string DefaultLockDir(const std::string& data_dir) {
  if (geteuid() == 0) return "/run/attune/locks";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return absl::StrCat(runtime, "/attune/locks");
  return absl::StrCat(data_dir, "/locks");
}

}  // namespace attune
