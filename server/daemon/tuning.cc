#include "server/daemon/tuning.h"

#include <algorithm>
#include <utility>

namespace attune {

Tuning::Tuning(const Options& options)
    : code_(options.store, options.compiler),
      means_{code_, claims_,
             options.compile_ahead > 0 ? options.compile_ahead : 4 * std::max(1, options.compiler.size()),
             options.clock},
      contests_({options.results, options.host.families, means_}),
      problem_tuner_({options.results, options.host.families, means_, contests_, options.models}),
      tune_(options.host, problem_tuner_),
      evaluate_({options.host, options.results, means_, contests_}),
      submit_({options.host,
               options.results,
               means_,
               options.library,
               options.submission_times,
               {options.store, options.tools, options.profile_time}}),
      profile_({options.host, options.store, options.tools, options.profile_time}),
      sanitize_({options.host, options.store, options.tools, options.profile_time}),
      sweep_means_{
          options.host, options.results, code_, problem_tuner_, {options.store, options.tools, options.profile_time}},
      sweep_(sweep_means_),
      sweep_problem_(sweep_means_, options.clock) {}

absl::StatusOr<std::unique_ptr<Tuning>> Tuning::Create(const Options& options) {
  std::unique_ptr<Tuning> tuning(new Tuning(options));
  jobs::TunerOptions tuner_options;
  tuner_options.store = &options.store;
  tuner_options.host = &options.host;
  tuner_options.devices = options.devices;
  tuner_options.kinds = {{store::JobKind::kTune, &tuning->tune_},
                         {store::JobKind::kEvaluate, &tuning->evaluate_},
                         {store::JobKind::kSubmit, &tuning->submit_},
                         {store::JobKind::kProfile, &tuning->profile_},
                         {store::JobKind::kSanitize, &tuning->sanitize_},
                         {store::JobKind::kSweep, &tuning->sweep_},
                         {store::JobKind::kSweepProblem, &tuning->sweep_problem_}};
  tuner_options.idle_release = options.idle_release;
  tuner_options.holder = options.holder;
  tuner_options.lease = options.lease;
  tuner_options.shared = options.shared;
  tuner_options.takes_work = options.takes_work;
  tuner_options.ended_elsewhere = options.ended_elsewhere;
  tuner_options.clock = options.clock;
  tuner_options.metrics = options.metrics;
  absl::StatusOr<std::unique_ptr<jobs::Tuner>> tuner = jobs::Tuner::Create(std::move(tuner_options));
  if (!tuner.ok()) return tuner.status();
  tuning->tuner_ = *std::move(tuner);
  return tuning;
}

}  // namespace attune
