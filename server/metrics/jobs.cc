#include "server/metrics/jobs.h"

#include <utility>

#include "server/metrics/words.h"

namespace attune::metrics {
namespace {

using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries& JobBounds() {
  static const auto& bounds =
      *new prometheus::Histogram::BucketBoundaries{0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 12 * 3600};
  return bounds;
}

}  // namespace

Jobs::Jobs(prometheus::Registry& registry)
    : ended_(CountersOf(registry, "attune_jobs_total", "Jobs that have ended, by kind and state.")),
      times_(HistogramsOf(registry, "attune_job_seconds", "How long jobs took that have ended, by kind.")),
      waits_(
          HistogramsOf(registry, "attune_job_wait_seconds", "How long jobs waited for their first turn on a device.")),
      reused_(CountersOf(registry, "attune_trials_reused_total",
                         "Trials that ended jobs took from the store in place of trying again.")
                  .Add({})),
      sweep_success_(GaugesOf(registry, "attune_sweep_last_success_timestamp_seconds",
                              "When the last sweep ended that succeeded; absent where none is known.")),
      sweep_problems_(GaugesOf(registry, "attune_sweep_problems",
                               "Problems of the last sweep that ended in this process, by outcome.")),
      on_miss_(CountersOf(registry, "attune_on_miss_jobs_total",
                          "Jobs that --on_miss=check or tune has begun, or wanted to, by what became of them.")) {
  for (const char* what : {"started", "refused", "succeeded", "failed"}) on_miss_.Add({{"result", what}});
  for (const char* kind : {"tune", "sweep", "evaluate", "sweep_problem", "submit"}) {
    for (const char* state : {"succeeded", "failed", "cancelled"}) ended_.Add({{"kind", kind}, {"state", state}});
  }
}

void Jobs::Ended(const std::string& kind, const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  ended_.Add({{"kind", kind}, {"state", Word(v1::Operation::State_Name(operation.state()), "STATE_")}}).Increment();
  times_.Add({{"kind", kind}}, JobBounds())
      .Observe(static_cast<double>(progress.elapsed().seconds()) + progress.elapsed().nanos() * 1e-9);
  reused_.Increment(static_cast<double>(progress.trials_reused()));
  // A sweep's problems end with reports of one row.
  if (!operation.has_sweep() || !operation.parent().empty()) return;
  std::map<v1::SweepReport::Outcome, int> counts;
  for (int outcome = v1::SweepReport::Outcome_MIN + 1; outcome <= v1::SweepReport::Outcome_MAX; ++outcome) {
    if (v1::SweepReport::Outcome_IsValid(outcome)) counts[static_cast<v1::SweepReport::Outcome>(outcome)] = 0;
  }
  for (const v1::SweepReport::Row& row : operation.sweep().rows()) ++counts[row.outcome()];
  for (const auto& [outcome, count] : counts) {
    sweep_problems_.Add({{"outcome", Word(v1::SweepReport::Outcome_Name(outcome), "OUTCOME_")}}).Set(count);
  }
}

void Jobs::Waited(const std::string& device_class, const std::string& priority, absl::Duration time) {
  waits_.Add({{"device_class", device_class}, {"priority", priority}}, JobBounds())
      .Observe(absl::ToDoubleSeconds(time));
}

void Jobs::SweepSucceeded(absl::Time end) {
  sweep_success_.Add({}).Set(absl::ToDoubleSeconds(end - absl::UnixEpoch()));
}

void Jobs::OnMiss(const std::string& what) { on_miss_.Add({{"result", what}}).Increment(); }

void Jobs::Collect(Families& families) const {
  const std::optional<std::vector<JobLoad>> loads = loads_.Get();
  if (!loads.has_value()) return;
  // Cards of a class together.
  std::map<std::pair<std::string, std::string>, JobLoad> sums;
  for (const JobLoad& load : *loads) {
    JobLoad& sum = sums[{load.device_class, load.priority}];
    sum.waiting += load.waiting;
    sum.running += load.running;
  }
  auto waiting = MakeFamily("attune_jobs_waiting", "Jobs that have not begun.", MetricType::Gauge);
  auto running =
      MakeFamily("attune_jobs_running", "Jobs that have begun; of those of a device one at a time has its turn.",
                 MetricType::Gauge);
  for (const auto& [key, sum] : sums) {
    const Labels labels = {{"device_class", key.first}, {"priority", key.second}};
    AddValue(waiting, labels, static_cast<double>(sum.waiting));
    AddValue(running, labels, static_cast<double>(sum.running));
  }
  if (sums.empty()) return;
  families.push_back(std::move(waiting));
  families.push_back(std::move(running));
}

}  // namespace attune::metrics
