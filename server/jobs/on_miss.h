// What --on_miss=check and --on_miss=tune do about shapes that were asked for and that nobody has tuned: one after the
// other, the most often asked for first, an ordinary job of the lowest priority.
//
// check has the variant of the answer checked and timed once; code that is wrong, or crashes, is taken out of such
// answers. tune is a small search of the problem: what neighbours have found best, each family's guess, then draws. A
// device is given such a job only when no other one of it is queued or runs; a job that comes later goes first between
// any two trials. What has ended without a result is left alone for a while; what the store knows today is not asked
// for again.
#ifndef ATTUNE_SERVER_JOBS_ON_MISS_H_
#define ATTUNE_SERVER_JOBS_ON_MISS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/host.h"
#include "server/catalog/misses.h"
#include "server/catalog/result_key.h"
#include "server/catalog/tuning_key.h"
#include "server/jobs/tuner.h"
#include "server/metrics/jobs.h"
#include "server/store/store.h"

namespace attune::jobs {

class OnMiss {
 public:
  enum class What { kCheck, kTune };
  struct Options {
    What what = What::kTune;
    // Jobs that a device is given in any hour. With the time that each may take for its trials it bounds their share of
    // the device: 60 of 15 s are a quarter.
    int per_hour = 60;
    int64_t trials = 10;
    absl::Duration trial_time = absl::Seconds(15);
    // How long what ended without a result is left alone, and a device at most whose jobs fail.
    absl::Duration hold = absl::Hours(1);
    Clock clock = SteadyNow;
    metrics::Jobs* metrics = nullptr;  // counts what it has begun
  };
  struct Means {
    Tuner& tuner;
    catalog::Misses& misses;
    catalog::CodeSupply& supply;
    store::Store& store;
    const catalog::Host& host;
  };

  // What `means` names outlives it.
  OnMiss(const Means& means, Options options) : means_(means), options_(std::move(options)) {}

  // Looks every second, on a thread of its own, until it is destroyed. Jobs that it has started go on.
  void Start();
  // Sees to what has ended, and starts what may begin. Not while the thread runs.
  void Look();

 private:
  // What was asked for, and answered with a variant.
  struct Case {
    catalog::ResultKey key;
    Problem problem;
    std::string variant;  // empty: there was no answer
  };
  struct Job {
    std::string name;
    Case about;
  };
  // Of one device.
  struct Work {
    std::optional<Job> job;
    std::deque<absl::Duration> starts;  // of the last hour
    int failures = 0;                   // one after the other
    absl::Duration quiet_until = -absl::InfiniteDuration();
  };
  // What is not to be looked at again before `until`; a check, unless another variant is the answer meanwhile.
  struct Seen {
    std::string variant;
    absl::Duration until;
  };

  void LookAt(const v1::Device& device, Work& work);
  bool MayStart(const v1::Device& device, Work& work);
  std::optional<Case> Next(const v1::Device& device);
  // False when there was nothing to start.
  bool StartJob(const v1::Device& device, Case about, Work& work);
  absl::StatusOr<v1::Operation> Begin(const v1::Device& device, const Case& about);
  void Conclude(const v1::Device& device, Work& work, const v1::Operation& ended);
  // What the store knows today of the answer's variant; that its code is wrong is told to the supply. UNSPECIFIED:
  // nothing.
  v1::Verdict Judge(const v1::Device& device, const Case& about);
  void Remember(const Case& about, absl::Duration until);
  void Count(const char* result) const;

  const Means means_;
  const Options options_;
  std::map<std::string, Work> work_;  // by device id
  std::map<std::string, Seen> seen_;  // by the key's text
  std::jthread thread_;               // last: it uses all of the above
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_ON_MISS_H_
