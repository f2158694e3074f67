// What makes results known, put together: the tuner, its kinds of jobs, and what they work with.
#ifndef ATTUNE_SERVER_DAEMON_TUNING_H_
#define ATTUNE_SERVER_DAEMON_TUNING_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/jobs/evaluate_job.h"
#include "server/jobs/tune_job.h"
#include "server/jobs/tune_problem.h"
#include "server/jobs/tuner.h"
#include "server/metrics/jobs.h"
#include "server/profile/profile_jobs.h"
#include "server/profile/tools.h"
#include "server/promotion/contest.h"
#include "server/store/store.h"
#include "server/submit/limits.h"
#include "server/submit/submit_job.h"
#include "server/supervisor/compile_pool.h"
#include "server/supervisor/device_worker.h"
#include "server/sweep/sweep_job.h"
#include "server/sweep/sweep_problem_job.h"
#include "server/trials/code.h"
#include "server/trials/trial_claims.h"
#include "server/trials/trial_phase.h"

namespace attune {

class Tuning {
 public:
  struct Options {
    // All live longer than the Tuning.
    const catalog::Host& host;
    store::Store& store;
    catalog::Results& results;
    supervisor::CompilePool& compiler;
    std::map<std::string, supervisor::DeviceWorker*> devices = {};  // by id
    int compile_ahead = 0;  // artifacts compiled, or being so, ahead of the device; 0: 4 a compile worker
    absl::Duration idle_release = absl::Seconds(60);
    std::string holder = "attuned";  // of jobs' leases
    absl::Duration lease = store::kDefaultLease;
    bool shared = false;                              // other daemons have the store open, too
    std::function<bool()> takes_work = nullptr;       // of classes, from the queue; null: always
    std::function<void()> ended_elsewhere = nullptr;  // as TunerOptions has it
    Clock clock = SteadyNow;                          // of elapsed times and budgets
    std::string library = {};                         // kernels_src/, whose libraries submissions may include
    submit::TimeLimits submission_times = {};
    profile::Tools* tools = nullptr;                 // lives longer; null: nothing is profiled or sanitized
    absl::Duration profile_time = absl::Minutes(2);  // of a profile's tools, or of all sanitizers
    metrics::Jobs* metrics = nullptr;                // counts jobs
    forecast::Models* models = nullptr;              // lives longer; null: as ProblemTuner has it
  };
  // InvalidArgument when a worker is not its device's.
  static absl::StatusOr<std::unique_ptr<Tuning>> Create(const Options& options);

  jobs::Tuner& tuner() { return *tuner_; }

 private:
  explicit Tuning(const Options& options);

  trials::CodeSource code_;
  trials::TrialClaims claims_;
  const trials::TrialPhase::Means means_;
  const promotion::Contests contests_;
  const jobs::ProblemTuner problem_tuner_;
  const jobs::TuneJob tune_;
  const jobs::EvaluateJob evaluate_;
  const submit::SubmitJob submit_;
  const profile::ProfileJob profile_;
  const profile::SanitizeJob sanitize_;
  const sweep::SweepMeans sweep_means_;
  const sweep::SweepJob sweep_;
  const sweep::SweepProblemJob sweep_problem_;
  std::unique_ptr<jobs::Tuner> tuner_;  // last: its jobs use all of the above
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_TUNING_H_
