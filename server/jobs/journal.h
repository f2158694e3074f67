// What the daemon's log says of jobs, trials and what they come to serve.
#ifndef ATTUNE_SERVER_JOBS_JOURNAL_H_
#define ATTUNE_SERVER_JOBS_JOURNAL_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"

namespace attune::jobs {

// `event`: what has happened to a job that goes on, as "job started".
void LogJob(absl::string_view event, const v1::Operation& operation);
// Its end: how long it took, how its trials ended, and why it failed if it did.
void LogJobEnd(const v1::Operation& operation);
// At the level debug.
void LogTrial(const v1::Trial& trial);
void LogPromotion(const std::optional<v1::Incumbent>& before, const v1::Incumbent& now);
// `now`: what is served again.
void LogRollBack(const v1::Incumbent& now, absl::string_view why);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_JOURNAL_H_
