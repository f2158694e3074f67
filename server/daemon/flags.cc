#include "server/daemon/flags.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/time/time.h"
#include "server/base/byte_size.h"

ABSL_FLAG(
    std::vector<std::string>, listen, {},
    "addresses to serve on, comma-separated: host:port or unix:/path; default: localhost:7411 and the Unix socket "
    "that clients look for by themselves, /run/attune/attuned.sock for root, else "
    "$XDG_RUNTIME_DIR/attune/attuned.sock");
ABSL_FLAG(bool, insecure, false,
          "listen also on addresses that other hosts can reach, although nothing is encrypted there");
ABSL_FLAG(std::string, anonymous_role, "reader",
          "what calls over TCP without a token may do: none, reader (look up, list, explain), tuner (also start and "
          "cancel work, and "
          "change what is served), author, or admin (all, backups too)");
ABSL_FLAG(std::string, socket_role, "tuner",
          "what users may do over a Unix socket, of those whom its mode (0660) lets connect; root and the daemon's own "
          "user are admins");
ABSL_FLAG(std::vector<std::string>, user_roles, {},
          "what single users may do over a Unix socket, comma-separated: alice=admin,1001=reader,guest=none");
ABSL_FLAG(std::string, tls_cert, "",
          "encrypt every TCP address (TLS 1.2 and later) with the server's certificate in this PEM file, its chain "
          "behind it; addresses that other hosts can reach are then allowed. Files are read again every 10 s");
ABSL_FLAG(std::string, tls_key, "", "PEM file with the unencrypted private key of --tls_cert");
ABSL_FLAG(std::string, tls_client_ca, "",
          "take only clients with a certificate that one in this PEM file has signed; whom a call is from is then the "
          "common name of its certificate's subject");
ABSL_FLAG(std::string, cert_role, "reader", "what clients may do by their certificate");
ABSL_FLAG(std::vector<std::string>, cert_roles, {},
          "what single clients may do by their certificate, comma-separated: nightly=tuner,alice=admin,gone=none");
ABSL_FLAG(int64_t, quota_operations, 100,
          "the most operations that a principal may have queued or running, parts of sweeps not counted; 0: no quota. "
          "Quotas are for callers from other hosts and for tokens; admins have none");
ABSL_FLAG(
    absl::Duration, quota_device_time, absl::ZeroDuration(),
    "how long operations of a principal may run on cards in a day (UTC), such as 2h; what runs then runs on, new ones "
    "are refused; 0: no quota");
ABSL_FLAG(int64_t, quota_requests, 2000, "requests a second of a principal, twice as many at once; 0: no quota");
ABSL_FLAG(attune::ByteSize, quota_request_size, attune::ByteSize{0},
          "the largest request of a principal, such as 64KiB; 0: 4MiB, as for everybody");
ABSL_FLAG(std::string, data_dir, "attune-data", "directory of the database and the compiled artifacts");
ABSL_FLAG(
    std::string, store, "",
    "keep results, operations, artifacts and blobs in this PostgreSQL database, together with other daemons: "
    "postgresql://user@host/database; the password is taken from ~/.pgpass or PGPASSFILE (docs/fleet.md). "
    "--data_dir is then this daemon's own: tokens, audit log, a cache of artifacts, and a copy of what is served, "
    "from which look-ups are answered after a start without the database. Default: SQLite in --data_dir");
ABSL_FLAG(std::vector<std::string>, kernels_dir, {},
          "directories of kernel families, comma-separated; default: the ones installed beside the daemon");
ABSL_FLAG(std::string, worker, "", "the attune-worker executable; default: beside the daemon");
ABSL_FLAG(std::string, lock_dir, "",
          "directory of the device locks, which nobody but its owner and group may write to; name the same for all "
          "daemons of a host. Default: /run/attune/locks for root, else $XDG_RUNTIME_DIR/attune/locks, else "
          "DATA_DIR/locks");
ABSL_FLAG(
    std::string, backup_dir, "",
    "directory that `attune backup` puts backups in, which no other daemon uses; without one there are no backups");
ABSL_FLAG(std::string, restore, "",
          "start nothing, but make the store in --data_dir, where there must be none yet, of the backup in this "
          "directory; exit with 1 if that cannot be");
ABSL_FLAG(
    std::string, copy_from, "",
    "start nothing, but fill the store that --store or else --data_dir names, and that must be empty, with all of "
    "this one: a directory whose daemon is stopped, to PostgreSQL, or postgresql://user@host/database, to SQLite. "
    "Every row is compared before there is anything in the store; exit with 1 if that cannot be");
ABSL_FLAG(absl::Duration, trial_age, absl::InfiniteDuration(),
          "forget trials that nobody has asked for in this long, such as 4320h; inf: never. What is served, and what "
          "keeps bad variants from being tried again, stays");
ABSL_FLAG(absl::Duration, job_age, absl::InfiniteDuration(), "forget operations that ended this long ago; inf: never");
ABSL_FLAG(absl::Duration, artifact_age, absl::InfiniteDuration(),
          "remove compiled code that was not used for this long and that no incumbent names; inf: never");
ABSL_FLAG(absl::Duration, retiming_age, absl::InfiniteDuration(),
          "forget how long incumbents took in nights this long ago (`attune history --times`); inf: never");
ABSL_FLAG(attune::ByteSize, database_limit, attune::ByteSize{int64_t{10} << 30},
          "forget the least recently used trials and operations when the database is larger than this, such as 512MiB; "
          "0: no limit");
ABSL_FLAG(attune::ByteSize, artifact_limit, attune::ByteSize{int64_t{10} << 30},
          "remove the least recently used compiled code when there is more than this, such as 512MiB; 0: no limit");
ABSL_FLAG(attune::ByteSize, blob_limit, attune::ByteSize{int64_t{1} << 30},
          "keep at most so much of other programs' caches (Triton's, Helion's), of all principals together, such as "
          "512MiB; what was used least recently goes; 0: keep none");
ABSL_FLAG(int, compile_workers, 0, "compile worker processes; 0: one a core");
ABSL_FLAG(absl::Duration, compile_timeout, absl::Seconds(120), "a compile that takes longer is TIMEOUT");
ABSL_FLAG(absl::Duration, trial_timeout, absl::Seconds(10), "a trial that takes longer on the device is TIMEOUT");
ABSL_FLAG(absl::Duration, idle_release, absl::Seconds(60),
          "give the device's memory back after this long without work");
ABSL_FLAG(
    std::string, on_miss, "compile",
    "what a look-up of a shape that nobody tuned starts: compile has the code of its answer compiled, so that "
    "there is something to launch; check also has that checked on the device, and tune the shape tuned with about "
    "ten trials, both only while no other job wants the device; off starts nothing");
ABSL_FLAG(int, on_miss_per_hour, 60,
          "the most jobs that --on_miss=check or tune starts on a device in any hour; each has 15 s for its trials, so "
          "that 60 take at most about a quarter of the device's time");
ABSL_FLAG(absl::Duration, submission_trial_timeout, absl::Seconds(6),
          "a trial of a submission that takes longer on the device is TIMEOUT; --trial_timeout where that is less");
ABSL_FLAG(absl::Duration, submission_time, absl::Minutes(5), "a submission that takes longer in all is reverted");
ABSL_FLAG(std::string, ncu, "",
          "Nsight Compute's command line, for `attune profile`; default: ncu in PATH, CUDA_HOME/bin or "
          "/usr/local/cuda/bin");
ABSL_FLAG(std::string, compute_sanitizer, "",
          "the compute-sanitizer for `attune sanitize`; default: that in PATH, CUDA_HOME/bin or /usr/local/cuda/bin");
ABSL_FLAG(absl::Duration, profile_time, absl::Minutes(2),
          "a profile, or all sanitizers of a trial together, that takes longer on the device is ended");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(15),
          "on SIGTERM, SIGINT and SIGHUP, how long running trials and calls may take to end; jobs go on at the next "
          "start");
ABSL_FLAG(std::string, verify, "device",
          "where outputs are compared: device (as far as it can; winners on the host too) or host (all of them)");
ABSL_FLAG(std::string, emulate, "", "run CUDA devices under the limits of this device profile, e.g. l4");
ABSL_FLAG(std::vector<std::string>, devices, {},
          "use only these devices, by id, UUID or class (l4), comma-separated; none: a gateway; default: all");
ABSL_FLAG(std::string, log_format, "text", "text or json");
ABSL_FLAG(std::string, log_level, "info", "the least that is logged: debug (every trial), info, warning or error");
ABSL_FLAG(std::string, metrics_listen, "",
          "serve metrics for Prometheus over HTTP on this address, at /metrics: host:port, or a port alone, which is "
          "127.0.0.1's (docs/metrics.md). Without it nothing is counted");
ABSL_FLAG(bool, metrics_insecure, false,
          "serve metrics also on an address that other hosts can reach, although nothing is encrypted there and nobody "
          "is asked who they are");
ABSL_FLAG(
    std::string, check, "",
    "start nothing, but report what is wrong with flags and the files that they name, manifests, store, tokens and "
    "host (toolchains, devices, cage), and exit with 1 if anything is. Without a value all five; else some of them, "
    "comma-separated");

namespace attune {

Settings SettingsOfFlags() {
  Settings settings;
  settings.listen = absl::GetFlag(FLAGS_listen);
  if (settings.listen.empty()) settings.listen = DefaultListen();
  settings.insecure = absl::GetFlag(FLAGS_insecure);
  settings.anonymous_role = absl::GetFlag(FLAGS_anonymous_role);
  settings.socket_role = absl::GetFlag(FLAGS_socket_role);
  settings.user_roles = absl::GetFlag(FLAGS_user_roles);
  settings.tls_cert = absl::GetFlag(FLAGS_tls_cert);
  settings.tls_key = absl::GetFlag(FLAGS_tls_key);
  settings.tls_client_ca = absl::GetFlag(FLAGS_tls_client_ca);
  settings.cert_role = absl::GetFlag(FLAGS_cert_role);
  settings.cert_roles = absl::GetFlag(FLAGS_cert_roles);
  settings.quota_operations = absl::GetFlag(FLAGS_quota_operations);
  settings.quota_device_time = absl::GetFlag(FLAGS_quota_device_time);
  settings.quota_requests = absl::GetFlag(FLAGS_quota_requests);
  settings.quota_request_size = absl::GetFlag(FLAGS_quota_request_size).bytes;
  settings.data_dir = absl::GetFlag(FLAGS_data_dir);
  settings.store = absl::GetFlag(FLAGS_store);
  settings.kernels_dir = absl::GetFlag(FLAGS_kernels_dir);
  settings.worker = absl::GetFlag(FLAGS_worker);
  settings.lock_dir = absl::GetFlag(FLAGS_lock_dir);
  if (settings.lock_dir.empty()) settings.lock_dir = DefaultLockDir(settings.data_dir);
  settings.backup_dir = absl::GetFlag(FLAGS_backup_dir);
  settings.trial_age = absl::GetFlag(FLAGS_trial_age);
  settings.job_age = absl::GetFlag(FLAGS_job_age);
  settings.artifact_age = absl::GetFlag(FLAGS_artifact_age);
  settings.retiming_age = absl::GetFlag(FLAGS_retiming_age);
  settings.database_limit = absl::GetFlag(FLAGS_database_limit).bytes;
  settings.artifact_limit = absl::GetFlag(FLAGS_artifact_limit).bytes;
  settings.blob_limit = absl::GetFlag(FLAGS_blob_limit).bytes;
  settings.compile_workers = absl::GetFlag(FLAGS_compile_workers);
  settings.compile_timeout = absl::GetFlag(FLAGS_compile_timeout);
  settings.trial_timeout = absl::GetFlag(FLAGS_trial_timeout);
  settings.idle_release = absl::GetFlag(FLAGS_idle_release);
  settings.on_miss = absl::GetFlag(FLAGS_on_miss);
  settings.on_miss_per_hour = absl::GetFlag(FLAGS_on_miss_per_hour);
  settings.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  settings.verify = absl::GetFlag(FLAGS_verify);
  settings.emulate = absl::GetFlag(FLAGS_emulate);
  settings.devices = absl::GetFlag(FLAGS_devices);
  settings.log_format = absl::GetFlag(FLAGS_log_format);
  settings.log_level = absl::GetFlag(FLAGS_log_level);
  settings.metrics_listen = absl::GetFlag(FLAGS_metrics_listen);
  settings.metrics_insecure = absl::GetFlag(FLAGS_metrics_insecure);
  settings.submission_trial_timeout = absl::GetFlag(FLAGS_submission_trial_timeout);
  settings.submission_time = absl::GetFlag(FLAGS_submission_time);
  settings.ncu = absl::GetFlag(FLAGS_ncu);
  settings.compute_sanitizer = absl::GetFlag(FLAGS_compute_sanitizer);
  settings.profile_time = absl::GetFlag(FLAGS_profile_time);
  return settings;
}

}  // namespace attune
