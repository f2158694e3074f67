#include "server/sweep/sweep_problem_job.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/base/sha256.h"
#include "server/sweep/sweep_plan.h"
#include "server/sweep/sweep_report.h"
#include "server/sweep/working_time.h"
#include "server/trials/tuning_key.h"

namespace attune::sweep {
namespace {

using Row = v1::SweepReport::Row;

Row FailedRow(const std::string& problem_text, absl::string_view why) {
  Row row;
  row.set_problem(problem_text);
  row.set_outcome(v1::SweepReport::OUTCOME_FAILED);
  row.set_detail(std::string(why));
  return row;
}

// A row, and of a failed one why its job fails.
struct Ended {
  Row row;
  absl::Status failed;
};

// Cancelled when the job was asked to stop; stale when its lease is over.
absl::StatusOr<Ended> EndFor(const Problem& problem, const v1::SweepPlan& plan, const SweepMeans& means,
                             trials::DeviceSlot& slot, const trials::Job& job) {
  absl::StatusOr<catalog::TuningKey> tuning_key =
      trials::MakeTuningKey(problem, slot.device(), plan.policy(), means.host);
  absl::Status failed = tuning_key.status();
  if (tuning_key.ok()) {
    absl::StatusOr<Row> row = SweepOne(means, plan, SweepSpec(plan, *std::move(tuning_key)), slot, job);
    if (row.ok() && row->outcome() == v1::SweepReport::OUTCOME_FAILED) failed = absl::NotFoundError(row->detail());
    if (row.ok()) return Ended{*std::move(row), std::move(failed)};
    if (absl::IsCancelled(row.status()) || store::IsStale(row.status())) return row.status();
    if (job.stop.stop_requested()) return absl::CancelledError("stopped");
    failed = row.status();
  }
  return Ended{FailedRow(ToText(problem), failed.message()), failed};
}

}  // namespace

std::string PartKey(size_t problem, const v1::Device& card) {
  return absl::StrCat(problem, "-", Sha256(card.fingerprint()).substr(0, 8));
}

jobs::Part PartFor(const v1::SweepPlan& plan, std::string key, const std::string& problem_text,
                   std::vector<std::string> cards) {
  v1::SweepRequest request;
  *request.mutable_plan() = plan;
  request.mutable_plan()->clear_shapes();
  request.mutable_plan()->add_shapes()->add_problem(problem_text);
  return {std::move(key), store::JobKind::kSweepProblem, request.SerializeAsString(), std::move(cards)};
}

Row RowOf(const v1::Operation& part) {
  if (part.sweep().rows_size() == 1) return part.sweep().rows(0);
  Row row =
      FailedRow(part.problem(), part.state() == v1::Operation::STATE_CANCELLED ? "cancelled" : part.error().message());
  row.set_device_id(part.progress().device_id());
  return row;
}

jobs::JobTerms SweepProblemJob::TermsOf(const v1::SweepRequest& request) const {
  jobs::JobTerms terms;
  terms.device = request.plan().device_id();
  terms.cards = jobs::Cards::kFree;
  terms.priority = trials::Priority::kBackground;
  return terms;
}

void SweepProblemJob::SetDevice(const std::string& device_id, v1::SweepRequest& request) const {
  request.mutable_plan()->set_device_id(device_id);
}

absl::StatusOr<jobs::JobTitle> SweepProblemJob::AdmitRequest(const v1::SweepRequest& request,
                                                             const std::vector<const v1::Device*>&) const {
  const std::string& text = request.plan().shapes(0).problem(0);
  return jobs::JobTitle{TitleOf(request.plan(), text), text};
}

absl::StatusOr<jobs::JobKind::Fill> SweepProblemJob::RunRequest(const v1::SweepRequest& request,
                                                                const jobs::JobRun& run) const {
  const v1::SweepPlan& plan = request.plan();
  const absl::StatusOr<Problem> problem = ParseProblem(plan.shapes(0).problem(0));
  if (!problem.ok()) return problem.status();
  // What it waits for jobs ahead of it, whether before its first turn on the device or later, is none of its time.
  if (absl::Status turn = trials::DeviceUse(run.slot, run.job.priority, run.job.stop, run.job.waiter).Await();
      !turn.ok()) {
    return turn;
  }
  WorkingTime time(clock_);
  const trials::Job job{run.job.name,     run.job.priority, run.job.stop, time.Counted(run.job.waiter),
                        run.job.progress, run.job.epoch,    run.job.abort};
  absl::StatusOr<Ended> ended = EndFor(*problem, plan, means_, run.slot, job);
  if (!ended.ok()) return ended.status();
  ended->row.set_device_id(run.card);
  SetDuration(time.Elapsed(), ended->row.mutable_working_time());
  v1::SweepReport report;
  report.set_title(plan.title());
  report.set_device_id(run.card);
  *report.add_rows() = std::move(ended->row);
  Complete(report);
  return [report = std::move(report), failed = std::move(ended->failed)](v1::Operation& operation) {
    *operation.mutable_sweep() = report;
    return failed;
  };
}

}  // namespace attune::sweep
