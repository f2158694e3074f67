// Stands in for many hosts of a fleet: what each asks of PostgreSQL, as often as a daemon does and by its classes, and
// no more. A host's heartbeat and its renewals of leases are always there; with --looks also the looks for work, which
// claim, and those for what others serve. Each host's work lasts until its next look.
//
//   simulate_hosts --database=postgresql://... --cache_dir=/tmp/caches --hosts=50 --queued=10000 --looks --time=1m
//
// Prints lines of JSON: {"ready"} when all hosts have registered and the time begins, then one with what was done.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "server/base/pause.h"
#include "server/base/proto_time.h"
#include "server/daemon/host_beat.h"
#include "server/store/postgresql/store.h"
#include "tests/load/filled.h"

ABSL_FLAG(std::string, database, "", "as attuned --store");
ABSL_FLAG(std::string, cache_dir, "", "directory for the hosts' caches of compiled code");
ABSL_FLAG(int, hosts, 50, "hosts");
ABSL_FLAG(int, queued, 0,
          "jobs of the hosts' class that are put into the queue first, beside one that each host holds");
ABSL_FLAG(int, ended, 0, "jobs of the hosts' class that are put there first as if they had ended three days ago");
ABSL_FLAG(bool, looks, false, "look for work every 2 s, and for what others serve every 5 s");
ABSL_FLAG(absl::Duration, time, absl::Minutes(1), "how long, from when all have registered");

namespace attune {
namespace {

using store::postgresql::PostgresqlStore;

// As the daemon's (server/jobs/tuner.cc, server/daemon/served_watch.h).
constexpr absl::Duration kLook = absl::Seconds(2);
constexpr absl::Duration kRenewal = absl::Seconds(5);
constexpr absl::Duration kServedLook = absl::Seconds(5);
constexpr absl::Duration kLate = absl::Minutes(2);

// Of all hosts. Thread-safe.
class Tally {
 public:
  void Claimed(absl::Duration took, const std::optional<store::Job>& job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    claims_ms_.push_back(absl::ToDoubleMilliseconds(took));
    if (!job.has_value()) return;
    if (!claimed_.insert(job->name).second || job->epoch != 1) ++claimed_twice_;
  }
  void Check(const absl::Status& status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (errors_.size() < 10) errors_.push_back(std::string(status.message()));
  }
  nlohmann::json Report() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::sort(claims_ms_.begin(), claims_ms_.end());
    const auto quantile = [this](double q) {
      return claims_ms_.empty() ? 0.0 : claims_ms_[static_cast<size_t>(q * static_cast<double>(claims_ms_.size() - 1))];
    };
    return {{"claims", claims_ms_.size()},
            {"claim_p50_ms", quantile(0.5)},
            {"claim_p99_ms", quantile(0.99)},
            {"claim_max_ms", quantile(1)},
            {"jobs_claimed", claimed_.size()},
            {"claimed_twice", claimed_twice_},
            {"jobs_finished", finished.load()},
            {"renewals", renewals.load()},
            {"told", told.load()},
            {"errors", errors_}};
  }

  std::atomic<int> finished = 0;
  std::atomic<int> renewals = 0;  // statements
  std::atomic<int> told = 0;      // heartbeats after which a host was told of all others

 private:
  std::mutex mutex_;
  std::vector<double> claims_ms_;
  std::set<std::string> claimed_;
  int claimed_twice_ = 0;
  std::vector<std::string> errors_;
};

v1::Operation NewOperation(const std::string& name, absl::Time created) {
  v1::Operation operation;
  operation.set_name(name);
  operation.set_title("simulated");
  operation.set_problem(ToText(FilledProblem(0)));
  SetTimestamp(created, operation.mutable_create_time());
  return operation;
}

store::Job NewJob(const std::string& name) {
  store::Job job;
  job.name = absl::StrCat("operations/", name);
  job.request = "simulated";
  job.device_class = FilledDevice().fingerprint();
  job.operation = NewOperation(job.name, absl::Now());
  return job;
}

// One host's threads are the daemon's: heartbeat, renewals, looks for work, looks for what is served.
class SimulatedHost {
 public:
  SimulatedHost(const std::string& name, Tally& tally) : name_(name), tally_(tally) {}

  absl::Status Start() {
    store::postgresql::StoreOptions options;
    options.database.connection.target = absl::GetFlag(FLAGS_database);
    options.home = name_;
    options.cache_directory = absl::StrCat(absl::GetFlag(FLAGS_cache_dir), "/", name_);
    absl::StatusOr<std::unique_ptr<PostgresqlStore>> store = PostgresqlStore::Open(options);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    store::Job own = NewJob(absl::StrCat(name_, ".", absl::ToUnixMicros(absl::Now())));
    own.device_class.clear();
    if (absl::Status made = store_->queue().Create(own, {}).status(); !made.ok()) return made;
    absl::StatusOr<std::optional<store::Job>> leased = store_->queue().Lease(own.name, name_, store::kHostTtl);
    if (!leased.ok()) return leased.status();
    own_ = *std::move(leased);
    v1::Host host;
    host.set_name(store::HostName(name_));
    host.set_version("simulated");
    *host.add_devices() = FilledDevice();
    auto beat = HostBeat::Start(store_->hosts(), host, [this](const std::vector<v1::Host>&) { ++tally_.told; });
    if (!beat.ok()) return beat.status();
    beat_ = *std::move(beat);
    threads_.emplace_back([this](const std::stop_token& stop) { Every(kRenewal, stop, [this] { Renew(); }); });
    if (!absl::GetFlag(FLAGS_looks)) return absl::OkStatus();
    threads_.emplace_back([this](const std::stop_token& stop) { Every(kLook, stop, [this] { Look(); }); });
    threads_.emplace_back(
        [this](const std::stop_token& stop) { Every(kServedLook, stop, [this] { LookAtServed(); }); });
    return absl::OkStatus();
  }
  // Claims no more; what it works on ends.
  void End() {
    threads_.clear();
    if (Finish(job_)) ++tally_.finished;
    Finish(own_);
    beat_.reset();
  }

 private:
  template <typename What>
  static void Every(absl::Duration period, const std::stop_token& stop, What what) {
    absl::BitGen random;  // daemons do not start at the same time
    if (!Pause(stop, absl::Uniform(random, 0.0, 1.0) * period)) return;
    do what();
    while (Pause(stop, period));
  }

  void Renew() {
    tally_.Check(store_->queue().RenewAll(name_, store::kHostTtl).status());
    ++tally_.renewals;
  }
  void Look() {
    if (Finish(job_)) ++tally_.finished;
    tally_.Check(store_->queue().Leasable(name_).status());  // for those that wait
    const absl::Time asked = absl::Now();
    absl::StatusOr<std::optional<store::Job>> job =
        store_->queue().Claim(name_, {{FilledDevice().fingerprint(), 0}}, store::kHostTtl);
    tally_.Check(job.status());
    if (job.ok()) {
      tally_.Claimed(absl::Now() - asked, *job);
      job_ = *std::move(job);
    }
    tally_.Check(store_->queue().Leasable(name_).status());  // for what may be begun
  }
  // Whether there was a job to finish.
  bool Finish(std::optional<store::Job>& job) {
    if (!job.has_value()) return false;
    v1::Operation operation = job->operation;
    operation.set_done(true);
    operation.set_state(v1::Operation::STATE_SUCCEEDED);
    const absl::Status finished = store_->queue().Finish({job->name, job->epoch}, operation);
    tally_.Check(finished);
    job.reset();
    return finished.ok();
  }
  void LookAtServed() { tally_.Check(store_->ChangesOfServed(kServedLook + kLate).status()); }

  const std::string name_;
  Tally& tally_;
  std::unique_ptr<PostgresqlStore> store_;
  std::unique_ptr<HostBeat> beat_;
  std::optional<store::Job> own_;  // is renewed from the start to the end
  std::optional<store::Job> job_;  // claimed at the last look
  std::vector<std::jthread> threads_;
};

absl::Status Queue(int jobs) {
  store::postgresql::PoolSettings settings;
  settings.connection.target = absl::GetFlag(FLAGS_database);
  auto queue = store::postgresql::PostgresqlQueue::Open(settings);
  if (!queue.ok()) return queue.status();
  for (int i = 0; i < jobs; ++i) {
    absl::Status made = (*queue)->Create(NewJob(absl::StrCat("queued", i)), {}).status();
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

// In one statement: with a transaction for each it would take long.
absl::Status AddEnded(int jobs) {
  if (jobs == 0) return absl::OkStatus();
  auto connection = store::postgresql::Connection::Open({.target = absl::GetFlag(FLAGS_database)});
  if (!connection.ok()) return connection.status();
  v1::Operation operation = NewOperation("operations/ended", absl::Now() - absl::Hours(72));
  operation.set_done(true);
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  const std::string message = operation.SerializeAsString();
  return (*connection)
      ->Execute(
          "INSERT INTO jobs (name, kind, request, done, cancelled, operation, device_class, holder, epoch, lease_until,"
          " end_ns) SELECT 'operations/ended' || i, 1, '', true, false, $1, $2, 'simulated', 1, now(),"
          " extract(epoch FROM now())::bigint * 1000000000 FROM generate_series(1, $3::bigint) AS i",
          store::postgresql::Blob{message}, FilledDevice().fingerprint(), jobs);
}

// How the server does the claim's two statements, with what the queue holds now.
absl::StatusOr<std::vector<std::string>> PlanOfClaim() {
  auto connection = store::postgresql::Connection::Open({.target = absl::GetFlag(FLAGS_database)});
  if (!connection.ok()) return connection.status();
  if (absl::Status known = (*connection)->ExecuteScript("ANALYZE jobs"); !known.ok()) return known;
  std::vector<std::string> plan;
  for (const std::string& sql : {store::postgresql::ClaimLeftSql(), store::postgresql::ClaimQueuedSql()}) {
    auto rows = (*connection)
                    ->Query("EXPLAIN " + sql, "host", absl::ToInt64Microseconds(store::kHostTtl),
                            absl::StrCat("{", FilledDevice().fingerprint(), "}"), "{0}");
    if (!rows.ok()) return rows.status();
    while (*rows->Step()) plan.emplace_back(rows->Text(0));
  }
  return plan;
}

void Print(const nlohmann::json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

absl::Status Simulate() {
  Tally tally;
  std::vector<std::unique_ptr<SimulatedHost>> hosts;
  if (absl::Status queued = Queue(absl::GetFlag(FLAGS_queued)); !queued.ok()) return queued;
  if (absl::Status added = AddEnded(absl::GetFlag(FLAGS_ended)); !added.ok()) return added;
  const absl::StatusOr<std::vector<std::string>> plan = PlanOfClaim();
  if (!plan.ok()) return plan.status();
  for (int i = 0; i < absl::GetFlag(FLAGS_hosts); ++i) {
    hosts.push_back(std::make_unique<SimulatedHost>(absl::StrCat("simulated", i), tally));
    if (absl::Status started = hosts.back()->Start(); !started.ok()) return started;
  }
  Print({{"ready", true}, {"plan", *plan}});
  absl::SleepFor(absl::GetFlag(FLAGS_time));
  nlohmann::json report = tally.Report();
  Print({{"over", true}});
  for (const auto& host : hosts) host->End();
  report["jobs_finished"] = tally.finished.load();
  report["errors"] = tally.Report()["errors"];  // those of the end, too
  report["seconds"] = absl::ToDoubleSeconds(absl::GetFlag(FLAGS_time));
  Print(report);
  return absl::OkStatus();
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_database).empty() || absl::GetFlag(FLAGS_cache_dir).empty()) {
    std::fprintf(stderr, "simulate_hosts: --database and --cache_dir are needed\n");
    return 2;
  }
  if (const absl::Status status = attune::Simulate(); !status.ok()) {
    std::fprintf(stderr, "simulate_hosts: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
