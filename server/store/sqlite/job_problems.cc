#include "server/store/sqlite/job_problems.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/store/sqlite/names.h"
#include "server/store/store.h"

namespace attune::store::sqlite {
namespace {

struct Nameless {
  int64_t id;
  v1::Operation operation;  // with the problem that its row lacks
};

template <typename Request>
std::string TextIn(absl::string_view request) {
  Request message;
  if (!Parse(request, "request", message).ok()) return "";
  const absl::StatusOr<Problem> problem = FromProto(message.problem());
  return problem.ok() ? ToText(*problem) : "";
}

// Canonical; empty when the request has no good one.
std::string ProblemOf(JobKind kind, absl::string_view request) {
  switch (kind) {
    case JobKind::kTune:
      return TextIn<v1::TuneRequest>(request);
    case JobKind::kEvaluate:
      return TextIn<v1::EvaluateVariantRequest>(request);
    case JobKind::kSweep:
    case JobKind::kSweepProblem:
    case JobKind::kSubmit:   // of several problems
    case JobKind::kProfile:  // of a trial, whose problem the operation has
    case JobKind::kSanitize:
      break;
  }
  return "";
}

absl::StatusOr<std::vector<Nameless>> NamelessJobs(Connection& connection) {
  Statement select(connection, "SELECT id, kind, request, operation FROM jobs WHERE problem_id IS NULL AND kind <> ?");
  select.Bind(static_cast<int>(JobKind::kSweep));
  std::vector<Nameless> jobs;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return jobs;
    Nameless job = {select.Int(0), {}};
    std::string problem = ProblemOf(static_cast<JobKind>(select.Int(1)), select.Bytes(2));
    if (problem.empty() || !Parse(select.Bytes(3), "operation", job.operation).ok()) continue;
    job.operation.set_problem(std::move(problem));
    jobs.push_back(std::move(job));
  }
}

}  // namespace

absl::Status NameProblemsOfJobs(Connection& connection) {
  absl::StatusOr<std::vector<Nameless>> jobs = NamelessJobs(connection);
  if (!jobs.ok()) return jobs.status();
  if (jobs->empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(connection);
  if (!transaction.ok()) return transaction.status();
  for (const Nameless& job : *jobs) {
    absl::StatusOr<int64_t> problem = InternProblem(connection, job.operation.problem());
    if (!problem.ok()) return problem.status();
    const std::string operation = job.operation.SerializeAsString();
    absl::Status status = Statement(connection, "UPDATE jobs SET problem_id = ?, operation = ? WHERE id = ?")
                              .Bind(*problem, Blob{operation}, job.id)
                              .Run();
    if (!status.ok()) return status;
  }
  return (*transaction)->Commit();
}

}  // namespace attune::store::sqlite
