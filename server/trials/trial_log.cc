#include "server/trials/trial_log.h"

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"

namespace attune::trials {

void LogTrial(const v1::Trial& trial) {
  LogDebug("trial", {{"trial", trial.name()},
                     {"job", trial.job()},
                     {"problem", trial.problem_text()},
                     {"variant", trial.variant().text()},
                     {"verdict", absl::StripPrefix(v1::Verdict_Name(trial.verdict()), "VERDICT_")},
                     {"us", absl::StrFormat("%.2f", trial.timing().median_us())},
                     {"detail", absl::string_view(trial.detail()).substr(0, 200)}});
}

}  // namespace attune::trials
