#include "server/sweep/sweep_job.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/attune/problem.h"
#include "server/sweep/sweep_plan.h"
#include "server/sweep/sweep_progress.h"
#include "server/sweep/sweep_report.h"
#include "server/sweep/working_time.h"
#include "server/trials/subject.h"

namespace attune::sweep {
namespace {

using Row = v1::SweepReport::Row;

absl::Duration TotalTime(const v1::SweepPlan& plan) {
  if (!plan.budget().has_total_time()) return absl::InfiniteDuration();
  const google::protobuf::Duration& most = plan.budget().total_time();
  return absl::Seconds(most.seconds()) + absl::Nanoseconds(most.nanos());
}

Row RowOf(const std::string& problem_text, v1::SweepReport::Outcome outcome, absl::string_view detail) {
  Row row;
  row.set_problem(problem_text);
  row.set_outcome(outcome);
  row.set_detail(std::string(detail));
  return row;
}

// Cancelled when the job was asked to stop; stale when its lease is over.
absl::StatusOr<Row> RowFor(const Problem& problem, const v1::SweepPlan& plan, const SweepMeans& means,
                           trials::DeviceSlot& slot, const trials::Job& job) {
  absl::StatusOr<catalog::Subject> subject = trials::MakeSubject(problem, slot.device(), plan.policy(), means.host);
  absl::Status failed = subject.status();
  if (subject.ok()) {
    absl::StatusOr<Row> row = SweepOne(means, plan, SweepSpec(plan, *std::move(subject)), slot, job);
    if (row.ok() || absl::IsCancelled(row.status()) || store::IsStale(row.status())) return row;
    if (job.stop.stop_requested()) return absl::CancelledError("stopped");
    failed = row.status();
  }
  return RowOf(ToText(problem), v1::SweepReport::OUTCOME_FAILED, failed.message());
}

}  // namespace

jobs::JobTerms SweepJob::TermsOf(const v1::SweepRequest& request) const {
  jobs::JobTerms terms;
  terms.device = request.plan().device_id();
  terms.priority = trials::Priority::kBackground;
  return terms;
}

void SweepJob::SetDevice(const std::string& device_id, v1::SweepRequest& request) const {
  request.mutable_plan()->set_device_id(device_id);
}

absl::StatusOr<jobs::JobTitle> SweepJob::AdmitRequest(const v1::SweepRequest& request, const v1::Device& device) const {
  const v1::SweepPlan& plan = request.plan();
  const absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  return jobs::JobTitle{absl::StrCat("sweep ", plan.title(), plan.title().empty() ? "" : ": ", problems->size(),
                                     " problems on ", device.id())};
}

absl::StatusOr<jobs::JobKind::Fill> SweepJob::RunRequest(const v1::SweepRequest& request,
                                                         const jobs::JobRun& run) const {
  const v1::SweepPlan& plan = request.plan();
  const absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  v1::SweepReport report = run.before.sweep();
  report.set_title(plan.title());
  report.set_device_id(run.slot.device().id());
  std::set<std::string> done;
  for (const Row& row : report.rows()) done.insert(row.problem());
  const absl::Duration most = TotalTime(plan);
  SweepProgress progress(run.job.progress, static_cast<int64_t>(problems->size()), report.rows_size(), clock_);
  // What it waits for jobs ahead of it, whether before its first turn on the device or later, is none of its time.
  WorkingTime time(clock_);
  const trials::Job job{run.job.name, run.job.priority, run.job.stop, time.Counted(run.job.waiter),
                        progress,     run.job.epoch,    run.job.abort};
  const absl::Status turn = trials::DeviceUse(run.slot, job.priority, job.stop, job.waiter).Await();
  if (!turn.ok()) return turn;
  for (const Problem& problem : *problems) {
    const std::string text = ToText(problem);
    if (done.contains(text)) continue;
    if (job.stop.stop_requested()) return absl::CancelledError("stopped");
    progress.Begin(text);
    absl::StatusOr<Row> row =
        RowOf(text, v1::SweepReport::OUTCOME_SKIPPED,
              absl::StrCat("the sweep's total time, ", absl::FormatDuration(most), ", was spent"));
    if (time.Elapsed() < most) row = RowFor(problem, plan, means_, run.slot, job);
    if (!row.ok()) return row.status();
    *report.add_rows() = *std::move(row);
    progress.End();
    Complete(report);
    const absl::Status saved = run.save([&](v1::Operation& operation) { *operation.mutable_sweep() = report; });
    if (!saved.ok()) return saved;
  }
  progress.Change([](v1::OperationProgress& now) { now.Clear(); });
  return [report](v1::Operation& operation) {
    *operation.mutable_sweep() = report;
    const std::string skipped = WordsOfSkipped(report);
    if (!skipped.empty()) operation.mutable_progress()->set_message(skipped);
  };
}

}  // namespace attune::sweep
