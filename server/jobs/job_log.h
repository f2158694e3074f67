// What the daemon's log says of jobs.
#ifndef ATTUNE_SERVER_JOBS_JOB_LOG_H_
#define ATTUNE_SERVER_JOBS_JOB_LOG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "server/store/queue.h"

namespace attune::jobs {

// "sweep_problem"
const char* WordOf(store::JobKind kind);

// `event`: what has happened to a job that goes on, as "job started". `trace`: that of the call that started it, if
// any.
void LogJob(absl::string_view event, const v1::Operation& operation, const std::string& trace = "");
// Its end: how long it took, how its trials ended, and why it failed if it did.
void LogJobEnd(const v1::Operation& operation, const std::string& trace = "");

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_JOB_LOG_H_
