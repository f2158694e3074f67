// What the daemon was told, and whether it makes sense: all of it before anything is opened or started.
#ifndef ATTUNE_SERVER_DAEMON_SETTINGS_H_
#define ATTUNE_SERVER_DAEMON_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/service/server_options.h"

namespace attune {

// One field a flag, of its name.
struct Settings {
  std::vector<std::string> listen;
  bool insecure = false;
  std::string anonymous_role = "reader";
  std::string socket_role = "tuner";
  std::vector<std::string> user_roles;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string cert_role = "reader";
  std::vector<std::string> cert_roles;
  int64_t quota_operations = 100;
  absl::Duration quota_device_time = absl::ZeroDuration();
  int64_t quota_requests = 2000;
  int64_t quota_request_size = 0;  // bytes
  std::string data_dir;
  std::string store;  // empty: in data_dir
  std::vector<std::string> kernels_dir;
  std::string worker;
  std::string lock_dir;
  std::string backup_dir;
  absl::Duration trial_age = absl::InfiniteDuration();
  absl::Duration job_age = absl::InfiniteDuration();
  absl::Duration artifact_age = absl::InfiniteDuration();
  absl::Duration retiming_age = absl::InfiniteDuration();
  int64_t database_limit = 0;  // bytes
  int64_t artifact_limit = 0;  // bytes
  int64_t blob_limit = 0;      // bytes
  int compile_workers = 0;
  absl::Duration compile_timeout;
  absl::Duration trial_timeout;
  absl::Duration idle_release;
  std::string on_miss;
  int on_miss_per_hour = 60;
  absl::Duration drain_timeout;
  std::string verify = "device";
  std::string emulate;
  std::vector<std::string> devices;
  std::string log_format;
  std::string log_level;
  std::string metrics_listen;  // empty: none
  bool metrics_insecure = false;
  absl::Duration submission_trial_timeout = absl::Seconds(6);
  absl::Duration submission_time = absl::Minutes(5);
  std::string ncu;                // empty: looked for
  std::string compute_sanitizer;  // the same
  absl::Duration profile_time = absl::Minutes(2);
};

// Whom the server serves, of settings without a mistake.
absl::StatusOr<service::ServerOptions> ServerOptionsOf(const Settings& settings);

// Every mistake there is, each in one line that names flag, value and what is allowed; empty when there is none.
std::vector<std::string> MistakesIn(const Settings& settings);
// Those among them that are about where the store is: --data_dir and --store.
std::vector<std::string> MistakesInStore(const Settings& settings);

// Where the daemon listens unless --listen says: on localhost, and on the Unix socket where clients look for it by
// themselves: /run/attune/attuned.sock for root, else below XDG_RUNTIME_DIR; no socket where there is no such place.
std::vector<std::string> DefaultListen();

// Where device locks are unless --lock_dir says: in a directory that only this user, or root, can write to, and the
// same one for all daemons of the user where there is such a place. /run/attune/locks for root, else below
// XDG_RUNTIME_DIR, else in the data directory. The Python bench has the same rule.
std::string DefaultLockDir(const std::string& data_dir);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_SETTINGS_H_
